//! What libpq and OpenSSL read in a certificate: its names, its time, its issuer, the hash of its signature.

use std::net::IpAddr;
use std::time::Duration;

use rustls::pki_types::{AlgorithmIdentifier, SignatureVerificationAlgorithm, UnixTime};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate as Parsed;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAltName};

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const SERVER_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const ANY_PURPOSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
/// Extensions that the checks here heed: key usage, names, basic constraints, purposes.
const HEEDED: [&str; 4] = ["2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.37"];
/// OIDs of SHA-256, SHA-384 and SHA-512 begin with this; the last byte is 1, 2 or 3 (RFC 5754).
const SHA2: [u8; 10] = [0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// A certificate.
pub(crate) struct Certificate {
    parsed: Parsed,
    der: Vec<u8>,
}

impl Certificate {
    /// From DER; an error says what is wrong with it.
    pub(crate) fn parse(der: &[u8]) -> Result<Self, String> {
        let parsed = Parsed::from_der(der).map_err(|error| format!("it cannot be read: {error}"))?;
        Ok(Self { parsed, der: der.to_vec() })
    }

    pub(crate) fn der(&self) -> &[u8] {
        &self.der
    }

    /// The public key as `SubjectPublicKeyInfo` in DER.
    pub(crate) fn public_key_info(&self) -> Vec<u8> {
        self.parsed.tbs_certificate().subject_public_key_info().to_der().unwrap_or_default()
    }

    /// Whether its issuer is itself, as OpenSSL wants of what it trusts.
    pub(crate) fn is_self_issued(&self) -> bool {
        self.parsed.tbs_certificate().issuer() == self.parsed.tbs_certificate().subject()
    }

    pub(crate) fn is_valid_at(&self, now: UnixTime) -> bool {
        let validity = self.parsed.tbs_certificate().validity();
        let now = Duration::from_secs(now.as_secs());
        (validity.not_before.to_unix_duration()..=validity.not_after.to_unix_duration()).contains(&now)
    }

    /// Whether a server may show it; `Err` says why not.
    pub(crate) fn check_purpose(&self) -> Result<(), String> {
        if let Some(unknown) = self.unknown_critical() {
            return Err(format!("it has the critical extension {unknown}"));
        }
        let certificate = self.parsed.tbs_certificate();
        match certificate.get_extension::<ExtendedKeyUsage>() {
            Ok(None) => Ok(()),
            Ok(Some((_, usage))) if usage.0.iter().any(|one| [SERVER_AUTHENTICATION, ANY_PURPOSE].contains(one)) => {
                Ok(())
            }
            _ => Err("it is not for servers (extended key usage)".to_owned()),
        }
    }

    /// Whether `issuer` may issue certificates, and has signed this one.
    pub(crate) fn is_issued_by(&self, issuer: &Self, known: &[&dyn SignatureVerificationAlgorithm]) -> bool {
        self.parsed.tbs_certificate().issuer() == issuer.parsed.tbs_certificate().subject()
            && issuer.is_authority()
            && self.parsed.tbs_certificate().to_der().is_ok_and(|signed| {
                let algorithm = self.parsed.signature_algorithm().to_der().unwrap_or_default();
                let signature = self.parsed.signature().raw_bytes();
                issuer.verifies(
                    known.iter().copied().filter(|one| is_of(one.signature_alg_id(), &algorithm)),
                    &signed,
                    signature,
                )
            })
    }

    /// Whether one of the algorithms finds the signature to be by this certificate's key.
    pub(crate) fn verifies<'a>(
        &self,
        algorithms: impl Iterator<Item = &'a dyn SignatureVerificationAlgorithm>,
        signed: &[u8],
        signature: &[u8],
    ) -> bool {
        let info = self.parsed.tbs_certificate().subject_public_key_info();
        let algorithm = info.algorithm.to_der().unwrap_or_default();
        let key = info.subject_public_key.raw_bytes();
        algorithms
            .filter(|one| is_of(one.public_key_alg_id(), &algorithm))
            .any(|one| one.verify_signature(key, signed, signature).is_ok())
    }

    /// As OpenSSL has it: basic constraints say so, or it is of version 1, which has none.
    fn is_authority(&self) -> bool {
        let certificate = self.parsed.tbs_certificate();
        let signs = match certificate.get_extension::<KeyUsage>() {
            Ok(usage) => usage.is_none_or(|(_, usage)| usage.key_cert_sign()),
            Err(_) => false,
        };
        let constraints = match certificate.get_extension::<BasicConstraints>() {
            Ok(Some((_, constraints))) => constraints.ca,
            Ok(None) => certificate.extensions().is_none_or(|extensions| extensions.is_empty()),
            Err(_) => false,
        };
        signs && constraints && self.unknown_critical().is_none()
    }

    fn unknown_critical(&self) -> Option<ObjectIdentifier> {
        let extensions = self.parsed.tbs_certificate().extensions().into_iter().flatten();
        let mut critical = extensions.filter(|one| one.critical).map(|one| one.extn_id);
        critical.find(|id| !HEEDED.contains(&id.to_string().as_str()))
    }

    /// Whether it is of a host, by libpq's rules (`fe-secure-openssl.c` and `fe-secure-common.c` of version 18): a name
    /// among its alternative names, or its common name where none of these is of the host's kind.
    pub(crate) fn is_of_host(&self, host: &str) -> bool {
        let address: Option<IpAddr> = host.parse().ok();
        let alternative = self.parsed.tbs_certificate().get_extension::<SubjectAltName>();
        let names = match alternative {
            Ok(found) => found.map(|(_, names)| names.0).unwrap_or_default(),
            Err(_) => return false,
        };
        let mut may_be_common = true;
        for name in &names {
            let (same_kind, matches) = match name {
                GeneralName::DnsName(name) => (address.is_none(), name_matches(name.as_str(), host)),
                GeneralName::IpAddress(bytes) => (
                    address.is_some(),
                    match address {
                        Some(IpAddr::V4(address)) => bytes.as_bytes() == address.octets(),
                        Some(IpAddr::V6(address)) => bytes.as_bytes() == address.octets(),
                        None => false,
                    },
                ),
                _ => (false, false),
            };
            if matches {
                return true;
            }
            may_be_common &= !same_kind;
        }
        may_be_common && self.common_name().is_some_and(|name| name_matches(&name, host))
    }

    fn common_name(&self) -> Option<String> {
        let subject = self.parsed.tbs_certificate().subject();
        let value = &subject.iter().find(|part| part.oid == COMMON_NAME)?.value;
        Utf8StringRef::try_from(value)
            .map(|text| text.as_str().to_owned())
            .or_else(|_| PrintableStringRef::try_from(value).map(|text| text.as_str().to_owned()))
            .or_else(|_| Ia5StringRef::try_from(value).map(|text| text.as_str().to_owned()))
            .or_else(|_| TeletexStringRef::try_from(value).map(|text| text.as_str().to_owned()))
            .ok()
    }

    /// `tls-server-end-point` of RFC 5929: the certificate's hash, by the function of its signature, or by SHA-256 where
    /// that is MD5 or SHA-1. None for signatures without one.
    pub(crate) fn end_point(&self) -> Option<Vec<u8>> {
        let algorithm = self.parsed.signature_algorithm();
        let parameters = algorithm.parameters.as_ref().and_then(|any| any.to_der().ok()).unwrap_or_default();
        let bits = match algorithm.oid.to_string().as_str() {
            // With RSA: MD5, SHA-1, SHA-256; with ECDSA: SHA-1, SHA-256.
            "1.2.840.113549.1.1.4"
            | "1.2.840.113549.1.1.5"
            | "1.2.840.113549.1.1.11"
            | "1.2.840.10045.4.1"
            | "1.2.840.10045.4.3.2" => 256,
            "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => 384,
            "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => 512,
            // RSA-PSS names the hash function first among its parameters; SHA-1 is the one that is left out.
            "1.2.840.113549.1.1.10" => match parameters.windows(11).find(|window| window.starts_with(&SHA2)) {
                Some([.., 2]) => 384,
                Some([.., 3]) => 512,
                _ => 256,
            },
            _ => return None,
        };
        Some(match bits {
            384 => Sha384::digest(&self.der).to_vec(),
            512 => Sha512::digest(&self.der).to_vec(),
            _ => Sha256::digest(&self.der).to_vec(),
        })
    }
}

/// `id` is what stands inside the sequence of `algorithm`, which is short.
fn is_of(id: AlgorithmIdentifier, algorithm: &[u8]) -> bool {
    algorithm.get(2..) == Some(id.as_ref())
}

/// Whether a name of a certificate is that of a host: the same, or `*.` in place of its first label.
fn name_matches(name: &str, host: &str) -> bool {
    if name.contains('\0') {
        return false;
    }
    let wildcard = || {
        let rest = name.strip_prefix('*').filter(|rest| rest.len() > 1 && rest.starts_with('.'))?;
        let (_, host_rest) = host.split_at_checked(host.find('.')?)?;
        Some(host.find('.')? > 0 && host_rest.eq_ignore_ascii_case(rest))
    };
    name.eq_ignore_ascii_case(host) || wildcard().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_one_label() {
        for (name, host) in
            [("a.example", "A.example"), ("*.example.com", "db.Example.com"), ("127.0.0.1", "127.0.0.1")]
        {
            assert!(name_matches(name, host), "{name} {host}");
        }
        for (name, host) in [
            ("*.example.com", "a.b.example.com"),
            ("*.example.com", "example.com"),
            ("*.example.com", ".example.com"),
            ("*", "a"),
            ("*.", "a."),
            ("a*.example", "ab.example"),
            ("a\0.example", "a"),
        ] {
            assert!(!name_matches(name, host), "{name} {host}");
        }
    }
}
