//! TLS to the server, by rustls.

use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned};

use crate::conninfo::{ConnInfo, SslMode};
use crate::error::DriveError;
use crate::login::LoginError;

/// Shakes hands on a socket of which the server has said that TLS comes now.
pub(crate) fn wrap(
    mut socket: TcpStream,
    to: &ConnInfo,
) -> Result<StreamOwned<ClientConnection, TcpStream>, LoginError> {
    let name = ServerName::try_from(to.host.clone())
        .map_err(|_| DriveError::new(format!("{} is no name that a certificate can have", to.host), "name the host"))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| DriveError::new(format!("TLS cannot be set up: {error}"), "this is a bug in pgdyno"))?;
    let config = if to.sslmode == SslMode::VerifyFull {
        builder.with_root_certificates(roots(to)?).with_no_client_auth()
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))).with_no_client_auth()
    };
    let mut connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| DriveError::new(format!("TLS cannot be set up: {error}"), "this is a bug in pgdyno"))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| {
            DriveError::new(
                format!("no TLS with {}: {error}", to.host),
                "verify-full wants a certificate for this name from a root in sslrootcert; require wants neither",
            )
        })?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// Where libpq looks too, unless a file is named.
fn roots(to: &ConnInfo) -> Result<RootCertStore, DriveError> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let usual = std::path::Path::new(&home).join(".postgresql/root.crt");
    let path = to.sslrootcert.as_ref().unwrap_or(&usual);
    let unusable = |why: String| {
        DriveError::new(
            format!("verify-full has no root certificate: {}: {why}", path.display()),
            "name the file of root certificates in sslrootcert or PGSSLROOTCERT",
        )
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        store.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(unusable("there is none in it".to_owned()));
    }
    Ok(store)
}

/// `sslmode=require` encrypts and does not ask who is there. Signatures of the handshake are checked all the same.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
