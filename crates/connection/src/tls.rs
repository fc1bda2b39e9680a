//! TLS to the server, by rustls, with libpq's rules on who is there.

use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::ResolvesClientCert;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, SignatureScheme, StreamOwned, SupportedProtocolVersion,
};
use serde_json::Value;
use webpki::{BorrowedCertRevocationList, CertRevocationList};

use crate::deadline::{Deadline, Overdue, Timed};
use crate::fault::Fault;
use crate::login_error::LoginError;
use crate::server::{ClientCertificate, Tls, TlsVersion, Verify};
use crate::verifier::{Trust, Verifier};

/// PostgreSQL's name among the protocols that TLS may carry (ALPN).
const PROTOCOL: &[u8] = b"postgresql";

/// Runs the TLS handshake on a socket whose server agreed to TLS, or expects it at once.
pub(crate) fn wrap(
    socket: TcpStream,
    host: &str,
    tls: &Tls,
    deadline: Deadline,
) -> Result<StreamOwned<ClientConnection, TcpStream>, LoginError> {
    let peer = socket.peer_addr()?;
    // The name is only what the server is told: whose certificate it shows is the verifier's to judge.
    let name = ServerName::try_from(host.to_owned()).unwrap_or_else(|_| ServerName::from(peer.ip()));
    let shown = Arc::new(AtomicBool::new(false));
    let config = Arc::new(config(host, tls, &shown)?);
    let mut connection = ClientConnection::new(config, name).map_err(|error| unusable(&error))?;
    while connection.is_handshaking() {
        let mut socket = Timed { socket: &socket, deadline };
        connection.complete_io(&mut socket).map_err(|error| failed(host, tls, error))?;
    }
    if tls.direct && connection.alpn_protocol() != Some(PROTOCOL) {
        return Err(Fault::new(
            format!("{host} speaks TLS, but did not say that it speaks PostgreSQL"),
            "sslnegotiation=direct needs PostgreSQL 17 or later; leave it out",
        )
        .coded("connection.tls.protocol", Value::Null)
        .into());
    }
    if tls.certificate_required && !shown.load(Ordering::Relaxed) {
        return Err(Fault::new(
            format!("{host} did not ask for the client's certificate, which sslcertmode=require wants"),
            "set ssl_ca_file in the server, or leave out sslcertmode",
        )
        .coded("connection.tls.client_certificate", Value::Null)
        .into());
    }
    Ok(StreamOwned::new(connection, socket))
}

/// `shown` becomes true when the server is shown the client's certificate.
fn config(host: &str, tls: &Tls, shown: &Arc<AtomicBool>) -> Result<ClientConfig, Fault> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier {
        provider: Arc::clone(&provider),
        trust: (tls.verify != Verify::None).then(|| trust(tls)).transpose()?,
        host: (tls.verify == Verify::Full).then(|| host.to_owned()),
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(tls))
        .map_err(|error| unusable(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &tls.certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => builder.with_client_cert_resolver(Arc::new(Shown {
            certificate: client_certificate(certificate, &provider)?,
            shown: Arc::clone(shown),
        })),
    };
    config.enable_sni = tls.sni;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn versions(tls: &Tls) -> Vec<&'static SupportedProtocolVersion> {
    let (least, most) = (tls.version_min.unwrap_or(TlsVersion::V12), tls.version_max.unwrap_or(TlsVersion::V13));
    let known = [(TlsVersion::V13, &TLS13), (TlsVersion::V12, &TLS12)];
    known.into_iter().filter(|(version, _)| (least..=most).contains(version)).map(|(_, version)| version).collect()
}

/// The client's certificate, and whether the server was shown it.
#[derive(Debug)]
struct Shown {
    certificate: Arc<CertifiedKey>,
    shown: Arc<AtomicBool>,
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.certificate.key.choose_scheme(schemes)?;
        self.shown.store(true, Ordering::Relaxed);
        Some(Arc::clone(&self.certificate))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn client_certificate(certificate: &ClientCertificate, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, Fault> {
    let ClientCertificate { file, key } = certificate;
    let chain = certificates(file, "sslcert")?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        Fault::new(
            format!("sslkey: {} has no key that can be used: {error}", key.display()),
            "give a key in PEM without a password: `openssl pkey -in KEY -out NEW`, and sslkey=NEW",
        )
    })?;
    CertifiedKey::from_der(chain, key, provider).map(Arc::new).map_err(|error| {
        Fault::new(
            format!("sslcert: the certificate in {} and its key cannot be used: {error}", file.display()),
            "give the key of this certificate in sslkey: RSA, ECDSA with P-256 or P-384, or Ed25519",
        )
    })
}

fn trust(tls: &Tls) -> Result<Trust, Fault> {
    let mut trust = Trust::default();
    for path in &tls.roots {
        trust.certificates.extend(certificates(path, "sslrootcert")?);
    }
    if !tls.crls.is_empty() {
        trust.revoked = Some(lists(&tls.crls)?);
    }
    Ok(trust)
}

fn certificates(path: &Path, keyword: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unreadable(path, keyword, "there is no certificate in it")),
        Err(error) => Err(unreadable(path, keyword, &error.to_string())),
    }
}

fn lists(paths: &[PathBuf]) -> Result<Vec<CertRevocationList<'static>>, Fault> {
    let mut all = Vec::new();
    for path in paths {
        let keyword = if path.is_dir() { "sslcrldir" } else { "sslcrl" };
        for file in if path.is_dir() { hashed(path)? } else { vec![path.clone()] } {
            let found = CertificateRevocationListDer::pem_file_iter(&file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| unreadable(&file, keyword, &error.to_string()))?;
            for der in found {
                let list = BorrowedCertRevocationList::from_der(&der).and_then(|list| list.to_owned());
                let list = list.map_err(|error| unreadable(&file, keyword, &error.to_string()))?;
                all.push(CertRevocationList::from(list));
            }
        }
    }
    Ok(all)
}

/// Files that OpenSSL would look at in a directory of revocation lists: a hash of the issuer's name, `.r` and a number.
fn hashed(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, "sslcrldir", &error.to_string()))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let is_list = |path: &PathBuf| {
        let number = path.extension().and_then(|extension| extension.to_str()?.strip_prefix('r'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Ok(paths.filter(is_list).collect())
}

fn unreadable(path: &Path, keyword: &str, why: &str) -> Fault {
    Fault::new(
        format!("{keyword}: {} cannot be used: {why}", path.display()),
        format!("name a readable file in PEM in {keyword}, or leave it out"),
    )
}

fn unusable(error: &rustls::Error) -> Fault {
    Fault::new(
        format!("TLS cannot be set up: {error}"),
        "look at ssl_min_protocol_version and ssl_max_protocol_version: TLSv1.2 and TLSv1.3 are spoken",
    )
}

fn failed(host: &str, tls: &Tls, error: io::Error) -> LoginError {
    if Overdue::limit(&error).is_some() {
        return error.into();
    }
    if error.kind() != io::ErrorKind::InvalidData {
        return LoginError::Absent(format!("the TLS handshake was cut off: {error}"));
    }
    let remedy = match tls.verify {
        Verify::Full => "verify-full needs a valid certificate of this host, issued by a certificate in sslrootcert",
        Verify::Ca => {
            "the certificate must be valid and issued by a certificate in sslrootcert (~/.postgresql/root.crt)"
        }
        Verify::None => "look at the server's log, and at the versions of TLS that both allow",
    };
    let why = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(why))) => {
            format!("the server's certificate: {why}")
        }
        _ => error.to_string(),
    };
    let fault = Fault::new(format!("no TLS with {host}: {why}"), remedy);
    LoginError::Refused(fault.coded("connection.tls.handshake", Value::Null))
}
