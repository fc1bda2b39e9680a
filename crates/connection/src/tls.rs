//! TLS to the server, by rustls, with libpq's rules on who is there.

use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, ClientConnection, ConfigBuilder, StreamOwned, SupportedProtocolVersion};
use webpki::{BorrowedCertRevocationList, CertRevocationList};

use crate::fault::Fault;
use crate::server::{ClientCertificate, Tls, TlsVersion, Verify};
use crate::verifier::{Trust, Verifier};

/// PostgreSQL's name among the protocols that TLS may carry (ALPN).
const PROTOCOL: &[u8] = b"postgresql";

/// Runs the TLS handshake on a socket whose server agreed to TLS, or expects it at once.
pub(crate) fn wrap(
    mut socket: TcpStream,
    host: &str,
    tls: &Tls,
) -> Result<StreamOwned<ClientConnection, TcpStream>, Fault> {
    let peer = socket.peer_addr().map_err(|error| interrupted(host, &error))?;
    // The name is only what the server is told: whose certificate it shows is the verifier's to judge.
    let name = ServerName::try_from(host.to_owned()).unwrap_or_else(|_| ServerName::from(peer.ip()));
    let mut connection = ClientConnection::new(Arc::new(config(host, tls)?), name).map_err(|error| unusable(&error))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| failed(host, tls, &error))?;
    }
    if tls.direct && connection.alpn_protocol() != Some(PROTOCOL) {
        return Err(Fault::new(
            format!("{host} speaks TLS, but did not say that it speaks PostgreSQL"),
            "sslnegotiation=direct needs PostgreSQL 17 or later; leave it out",
        ));
    }
    Ok(StreamOwned::new(connection, socket))
}

fn config(host: &str, tls: &Tls) -> Result<ClientConfig, Fault> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier {
        provider: Arc::clone(&provider),
        trust: (tls.verify != Verify::None).then(|| trust(tls)).transpose()?,
        host: (tls.verify == Verify::Full).then(|| host.to_owned()),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(tls))
        .map_err(|error| unusable(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &tls.certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => with_certificate(builder, certificate)?,
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

fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    certificate: &ClientCertificate,
) -> Result<ClientConfig, Fault> {
    let ClientCertificate { file, key } = certificate;
    let chain = certificates(file, "sslcert")?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        Fault::new(
            format!("sslkey: {} has no key that can be used: {error}", key.display()),
            "give a key in PEM without a password: `openssl pkey -in KEY -out NEW`, and sslkey=NEW",
        )
    })?;
    builder.with_client_auth_cert(chain, key).map_err(|error| {
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

fn failed(host: &str, tls: &Tls, error: &io::Error) -> Fault {
    if error.kind() != io::ErrorKind::InvalidData {
        return interrupted(host, error);
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
    Fault::new(format!("no TLS with {host}: {why}"), remedy)
}

fn interrupted(host: &str, error: &io::Error) -> Fault {
    Fault::absent(format!("the TLS handshake with {host} was cut off: {error}"), "look at the server's log")
}
