//! Judges a server's certificate as libpq does with OpenSSL.
//!
//! webpki finds the chain to a trusted certificate, with its constraints, purposes and revocation. It refuses two kinds of
//! certificates that OpenSSL takes and that PostgreSQL's documentation shows how to make ("Creating Certificates"): an
//! authority's own as the server's, and one of version 1. These are accepted if they are trusted themselves, or are signed
//! by what is trusted.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth, RevocationOptionsBuilder,
    UnknownStatusPolicy,
};

use crate::certificate::Certificate;

/// What is trusted.
#[derive(Default)]
pub(crate) struct Trust {
    /// As they were in the files.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Revocation lists; none: revocation is not checked.
    pub revoked: Option<Vec<CertRevocationList<'static>>>,
}

/// See the module.
pub(crate) struct Verifier {
    pub provider: Arc<CryptoProvider>,
    /// None: any certificate will do.
    pub trust: Option<Trust>,
    /// Whose certificate it must be, if that matters.
    pub host: Option<String>,
}

impl Verifier {
    fn verify(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), String> {
        let certificate = Certificate::parse(shown)?;
        if let Some(trust) = &self.trust {
            self.verify_chain(trust, (shown, &certificate), intermediates, now)?;
        }
        match &self.host {
            Some(host) if !certificate.is_of_host(host) => Err(format!("it is not of the host {host}")),
            _ => Ok(()),
        }
    }

    fn verify_chain(
        &self,
        trust: &Trust,
        (shown, certificate): (&CertificateDer<'_>, &Certificate),
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), String> {
        let trusted: Vec<Certificate> =
            trust.certificates.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
        // OpenSSL trusts what issued itself, and wants it to be in its time; the others are parts of a chain.
        let (roots, others): (Vec<_>, Vec<_>) = trusted.iter().partition(|one| one.is_self_issued());
        let roots: Vec<&Certificate> = roots.into_iter().filter(|one| one.is_valid_at(now)).collect();
        let ders: Vec<CertificateDer<'_>> = roots.iter().map(|one| CertificateDer::from(one.der())).collect();
        let anchors: Vec<_> = ders.iter().filter_map(|der| webpki::anchor_from_trusted_cert(der).ok()).collect();
        let others = others.iter().map(|one| CertificateDer::from(one.der()));
        let chain: Vec<CertificateDer<'_>> = intermediates.iter().cloned().chain(others).collect();
        let lists: Vec<&CertRevocationList<'_>> = trust.revoked.iter().flatten().collect();
        let revocation = match (&trust.revoked, RevocationOptionsBuilder::new(&lists)) {
            (None, _) => None,
            (Some(_), Err(_)) => return Err("no revocation list is there to look it up in".to_owned()),
            (Some(_), Ok(options)) => Some(
                options
                    .with_depth(RevocationCheckDepth::Chain)
                    .with_status_policy(UnknownStatusPolicy::Deny)
                    .with_expiration_policy(ExpirationPolicy::Enforce)
                    .build(),
            ),
        };
        let algorithms = self.provider.signature_verification_algorithms.all;
        let found = EndEntityCert::try_from(shown).and_then(|end| {
            end.verify_for_usage(algorithms, &anchors, &chain, now, KeyUsage::server_auth(), revocation, None).map(drop)
        });
        match found {
            Ok(()) => Ok(()),
            Err(webpki::Error::CaUsedAsEndEntity | webpki::Error::UnsupportedCertVersion) => {
                self.verify_directly(trust, certificate, &roots, now)
            }
            Err(error) => Err(match error {
                webpki::Error::UnknownIssuer => "no certificate of sslrootcert has issued it".to_owned(),
                webpki::Error::CertExpired { .. } | webpki::Error::InvalidCertValidity => "it has expired".to_owned(),
                webpki::Error::CertNotValidYet { .. } => "it is not valid yet".to_owned(),
                webpki::Error::CertRevoked => "it was revoked".to_owned(),
                webpki::Error::UnknownRevocationStatus => "no revocation list covers it or its issuers".to_owned(),
                other => other.to_string(),
            }),
        }
    }

    /// One that is trusted itself, or that a trusted one has signed.
    fn verify_directly(
        &self,
        trust: &Trust,
        certificate: &Certificate,
        roots: &[&Certificate],
        now: UnixTime,
    ) -> Result<(), String> {
        if trust.revoked.is_some() {
            return Err("of version 1, or of an authority, it cannot be looked up in a revocation list here".to_owned());
        }
        if !certificate.is_valid_at(now) {
            return Err("it has expired, or is not valid yet".to_owned());
        }
        certificate.check_purpose()?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let trusted =
            |root: &&&Certificate| root.der() == certificate.der() || certificate.is_issued_by(root, algorithms);
        match roots.iter().find(trusted) {
            Some(_) => Ok(()),
            None => Err("no certificate of sslrootcert has issued it, or not directly, as it must one of version 1 or of an authority".to_owned()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verify(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion()).map_err(unfit)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let certificate = Certificate::parse(certificate).map_err(unfit)?;
        let schemes = self.provider.signature_verification_algorithms.mapping;
        let algorithms = schemes.iter().filter(|(scheme, _)| *scheme == signed.scheme).flat_map(|(_, all)| *all);
        if certificate.verifies(algorithms.copied(), message, signed.signature()) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        Err(CertificateError::BadSignature.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = Certificate::parse(certificate).map_err(unfit)?.public_key_info();
        let key = SubjectPublicKeyInfoDer::from(key);
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Verifier")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unfit(String);

fn unfit(why: String) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(Unfit(why)))).into()
}
