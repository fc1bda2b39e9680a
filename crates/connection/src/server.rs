//! Where a server is and how to log in, complete: libpq has resolved connection string, environment, service and password
//! file before, and nothing is looked up here.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::keepalive::Keepalive;

/// The longest log-in where `connect_timeout` is 0 or longer. PostgreSQL allows no larger `authentication_timeout`, so a sound
/// server has given up by then.
const LOGIN_MAX: Duration = Duration::from_secs(600);
/// The longest request to cancel where `connect_timeout` is 0. Nobody authenticates in one.
const CANCEL_MAX: Duration = Duration::from_secs(10);

/// A connection that can be made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The name by which the server was asked for: what its certificate must have. Or the directory of its socket, or `@`
    /// and an abstract one.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Where libpq reached it; none for a Unix socket.
    #[serde(default)]
    pub(crate) address: Option<IpAddr>,
    /// Whether the name may be looked up again when nothing answers at the address: after a failover it is another one.
    #[serde(default)]
    pub(crate) look_up: bool,
    pub(crate) user: String,
    pub(crate) dbname: String,
    #[serde(default)]
    password: Option<Secret>,
    /// What the server calls these sessions.
    pub application_name: String,
    /// Further parameters of the startup message: `options`, `TimeZone`, `DateStyle`.
    #[serde(default)]
    pub(crate) startup: BTreeMap<String, String>,
    /// For the whole log-in; 0 is the longest one.
    pub(crate) connect_timeout_s: u64,
    pub(crate) keepalive: Keepalive,
    /// Ways of authentication that are acceptable; none is any.
    #[serde(default)]
    pub(crate) require_auth: Option<Vec<Authentication>>,
    #[serde(default)]
    pub(crate) channel_binding: ChannelBinding,
    /// The operating system's user whose process must be at the other end of a Unix socket.
    #[serde(default)]
    pub(crate) peer_uid: Option<u32>,
    /// None is in clear.
    #[serde(default)]
    pub(crate) tls: Option<Tls>,
}

impl Server {
    pub(crate) fn is_local(&self) -> bool {
        self.host.starts_with(['/', '@'])
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        &self.dbname
    }

    /// How long a log-in may take, from the first packet to the server's readiness.
    pub(crate) fn login_limit(&self) -> Duration {
        self.limit(LOGIN_MAX)
    }

    /// How long a request to cancel may take.
    pub(crate) fn cancel_limit(&self) -> Duration {
        self.limit(CANCEL_MAX)
    }

    fn limit(&self, otherwise: Duration) -> Duration {
        if self.connect_timeout_s > 0 { Duration::from_secs(self.connect_timeout_s).min(LOGIN_MAX) } else { otherwise }
    }

    /// An empty one is none, as for libpq.
    pub(crate) fn password(&self) -> Option<&[u8]> {
        self.password.as_ref().map(|secret| secret.0.as_bytes()).filter(|secret| !secret.is_empty())
    }

    /// Whether the server may authenticate the user in this way.
    pub(crate) fn accepts(&self, way: Authentication) -> bool {
        self.require_auth.as_ref().is_none_or(|ways| ways.contains(&way))
    }
}

/// What never gets into a log or a message.
#[derive(Clone, Deserialize)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("***")
    }
}

/// A way of authentication, by libpq's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Authentication {
    /// The server asks for nothing, or for a client certificate.
    None,
    /// A password in clear.
    Password,
    /// Its MD5 hash.
    Md5,
    /// SCRAM.
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
}

impl Authentication {
    /// libpq's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
        }
    }
}

/// Whether the log-in proves that both ends see the same TLS session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server offers it.
    #[default]
    Prefer,
    /// Always.
    Require,
}

/// How a session is encrypted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    pub verify: Verify,
    /// Files of certificates that are trusted, if their issuers are themselves.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Files of revocation lists, or directories of them with names such as `5ad8a5d6.r0`. Where there is one, each
    /// certificate must be in the scope of a list.
    #[serde(default)]
    pub crls: Vec<PathBuf>,
    /// The client's certificate and its key.
    #[serde(default)]
    pub certificate: Option<ClientCertificate>,
    /// Whether the server must ask for that certificate.
    #[serde(default)]
    pub certificate_required: bool,
    #[serde(default)]
    pub version_min: Option<TlsVersion>,
    #[serde(default)]
    pub version_max: Option<TlsVersion>,
    /// Whether the server is told the host's name in clear (Server Name Indication).
    pub sni: bool,
    /// Whether TLS begins at once, without PostgreSQL's request for it.
    #[serde(default)]
    pub direct: bool,
}

/// How much of the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verify {
    /// Nothing.
    None,
    /// That a trusted authority issued it.
    Ca,
    /// And that it is of this host.
    Full,
}

/// Files of a client certificate, in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientCertificate {
    pub file: PathBuf,
    pub key: PathBuf,
}

/// Versions of TLS; older ones are not spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum TlsVersion {
    #[serde(rename = "TLSv1.2")]
    V12,
    #[serde(rename = "TLSv1.3")]
    V13,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#""host": "h", "port": 5432, "user": "u", "dbname": "d", "application_name": "a", "connect_timeout_s": 10,
        "keepalive": {"enabled": true, "idle_s": 60, "interval_s": 15, "count": 8, "user_timeout_ms": 1000}"#;

    #[test]
    fn a_password_is_not_shown() {
        let server: Server = serde_json::from_str(&format!("{{{LEAST}, \"password\": \"correct horse\"}}")).unwrap();
        assert_eq!(server.password(), Some(b"correct horse".as_slice()));
        assert!(!format!("{server:?}").contains("horse"));
    }

    #[test]
    fn a_log_in_and_a_request_to_cancel_have_a_limit_whatever_is_asked_for() {
        for (asked, login_s, cancel_s) in
            [("10", 10, 10), ("1", 1, 1), ("0", 600, 10), ("18446744073709551615", 600, 600)]
        {
            let document = LEAST.replace("\"connect_timeout_s\": 10", &format!("\"connect_timeout_s\": {asked}"));
            let server: Server = serde_json::from_str(&format!("{{{document}}}")).unwrap();
            assert_eq!(server.login_limit(), Duration::from_secs(login_s));
            assert_eq!(server.cancel_limit(), Duration::from_secs(cancel_s));
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(serde_json::from_str::<Server>(&format!("{{{LEAST}, \"sslcompression\": \"1\"}}")).is_err());
    }
}
