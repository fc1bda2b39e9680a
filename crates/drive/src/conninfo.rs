//! Where the server is and who asks, in libpq's words: given settings, else a service file, else the environment.
//!
//! Rules and names from PostgreSQL's documentation, "Database Connection Control Functions" and "The Password File"
//! (version 18, 2025-09). A keyword that is not known here is refused rather than ignored, since it may be about
//! security.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::DriveError;
use crate::user::operating_systems_user;
use crate::vanish::{self, Patience};

/// Keyword, and the variable of the environment that stands for it.
const KEYWORDS: [(&str, &str); 12] = [
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("dbname", "PGDATABASE"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("service", "PGSERVICE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
];
/// Debian's and upstream's places of the server's socket, in this order.
const SOCKET_DIRS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// A server that does not answer within this is not there. libpq would wait for ever; here one says so, by 0.
const CONNECT_TIMEOUT_S: u64 = 10;

/// How TLS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SslMode {
    /// Never. Also over a Unix socket, whatever is asked for.
    Disable,
    /// Encrypted, to whomever.
    Require,
    /// Encrypted, to a server with the right certificate for its name.
    VerifyFull,
}

/// A connection that can be made.
#[derive(Clone)]
pub(crate) struct ConnInfo {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub dbname: String,
    pub password: Option<String>,
    pub sslmode: SslMode,
    pub sslrootcert: Option<PathBuf>,
    pub options: Option<String>,
    pub application_name: String,
    /// None: as long as it takes.
    pub connect_timeout: Option<Duration>,
    pub patience: Patience,
}

impl ConnInfo {
    /// From given settings and what `environment` says of a variable.
    pub(crate) fn resolve(
        given: &BTreeMap<String, String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, DriveError> {
        let mut settings = given.clone();
        let service = settings.get("service").cloned().or_else(|| environment("PGSERVICE"));
        if let Some(service) = service {
            for (key, value) in read_service(&service, &environment)? {
                settings.entry(key).or_insert(value);
            }
        }
        let known: Vec<&str> = KEYWORDS.iter().map(|(known, _)| *known).chain(vanish::KEYWORDS).collect();
        if let Some(unknown) = settings.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(DriveError::new(
                format!("the connection's setting {unknown} is not one of the driver's"),
                format!("leave it out, of the service file too; known are {}", known.join(", ")),
            ));
        }
        // To libpq it is where the server is, whatever the host's name: passed over, another server would be driven.
        if environment("PGHOSTADDR").is_some() {
            return Err(DriveError::new(
                "PGHOSTADDR is set, and the driver does not know it",
                "unset it, and name the server by host or PGHOST, which take an address too",
            ));
        }
        for (key, variable) in KEYWORDS {
            if let (false, Some(value)) = (settings.contains_key(key), environment(variable)) {
                settings.insert(key.to_owned(), value);
            }
        }
        Self::of_settings(settings, &environment)
    }

    fn of_settings(
        settings: BTreeMap<String, String>,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, DriveError> {
        let get = |key: &str| settings.get(key).filter(|value| !value.is_empty()).cloned();
        let socket_dir = || SOCKET_DIRS.into_iter().find(|dir| Path::new(dir).is_dir()).unwrap_or("/tmp").to_owned();
        let host = get("host").unwrap_or_else(socket_dir);
        let number = |key: &str, otherwise: u64| match get(key) {
            None => Ok(otherwise),
            Some(text) => text
                .trim()
                .parse()
                .map_err(|_| DriveError::new(format!("the connection's {key} is {text}"), "give a whole number")),
        };
        let port = u16::try_from(number("port", 5432)?)
            .map_err(|_| DriveError::new("the connection's port is beyond 65535", "give the server's port"))?;
        let user = get("user").map_or_else(operating_systems_user, Ok)?;
        let dbname = get("dbname").unwrap_or_else(|| user.clone());
        let passfile = get("passfile")
            .map(PathBuf::from)
            .or_else(|| environment("HOME").map(|home| Path::new(&home).join(".pgpass")));
        let password = get("password").or_else(|| {
            let text = private_text(&passfile?)?;
            find_password(&text, &[&host, &port.to_string(), &dbname, &user])
        });
        let connect_timeout_s = number("connect_timeout", CONNECT_TIMEOUT_S)?;
        let connect_timeout = (connect_timeout_s > 0).then(|| Duration::from_secs(connect_timeout_s));
        let local = host.starts_with('/');
        Ok(Self {
            sslmode: if local { SslMode::Disable } else { ssl_mode(get("sslmode").as_deref())? },
            sslrootcert: get("sslrootcert").map(PathBuf::from),
            options: get("options"),
            application_name: get("application_name").unwrap_or_else(|| "pgdyno drive".to_owned()),
            connect_timeout,
            patience: Patience::of(number)?,
            host,
            port,
            user,
            dbname,
            password,
        })
    }
}

/// libpq's `prefer` and `allow` give way without a word, so what was measured would not be known: here one says which.
fn ssl_mode(mode: Option<&str>) -> Result<SslMode, DriveError> {
    match mode {
        None | Some("disable") => Ok(SslMode::Disable),
        Some("require") => Ok(SslMode::Require),
        Some("verify-full") => Ok(SslMode::VerifyFull),
        Some(other) => Err(DriveError::new(
            format!("the driver does not do sslmode={other}"),
            "take disable, require or verify-full: with the others it would not be known what was measured",
        )),
    }
}

fn read_service(
    service: &str,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, DriveError> {
    let own = environment("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| environment("HOME").map(|home| Path::new(&home).join(".pg_service.conf")));
    let system = environment("PGSYSCONFDIR").map(|dir| Path::new(&dir).join("pg_service.conf"));
    let files = [own, system, Some(PathBuf::from("/etc/postgresql-common/pg_service.conf"))];
    files
        .into_iter()
        .flatten()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .find_map(|text| section(&text, service))
        .ok_or_else(|| {
            DriveError::new(
                format!("no service file has the service {service}"),
                "name the file in PGSERVICEFILE, or put the service into ~/.pg_service.conf",
            )
        })
}

/// The settings below `[name]`.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if found.is_some() {
                break;
            }
            found = (header == name).then(BTreeMap::new);
        } else if let (Some(settings), Some((key, value))) = (&mut found, line.split_once('=')) {
            settings.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    found
}

/// The password file, unless others may read it: libpq does not use such a one either.
fn private_text(path: &Path) -> Option<String> {
    let facts = std::fs::metadata(path).ok()?;
    (facts.is_file() && facts.permissions().mode() & 0o077 == 0).then(|| std::fs::read_to_string(path).ok())?
}

/// The password of the first line whose four fields are `wanted` or `*`. A directory of sockets is also `localhost`.
fn find_password(text: &str, wanted: &[&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let matches = |(field, wanted): (&String, &&str)| {
            field == "*" || field == wanted || (field == "localhost" && wanted.starts_with('/'))
        };
        (fields.len() == 5 && fields.iter().zip(wanted).all(matches)).then(|| fields[4].clone())
    })
}

/// Five fields between colons; a backslash takes the next character as it is. The last runs to the end of the line.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            ':' if last < 4 => fields.push(String::new()),
            '\\' => fields[last].extend(characters.next()),
            other => fields[last].push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_given_comes_before_the_environment() {
        let environment = |name: &str| match name {
            "PGHOST" => Some("elsewhere".to_owned()),
            "PGPORT" => Some("6000".to_owned()),
            _ => None,
        };
        let found = ConnInfo::resolve(&settings(&[("host", "/run/x"), ("user", "u")]), environment).unwrap();
        assert_eq!((found.host.as_str(), found.port, found.dbname.as_str()), ("/run/x", 6000, "u"));
    }

    #[test]
    fn a_setting_that_is_not_known_is_refused() {
        let Err(error) = ConnInfo::resolve(&settings(&[("sslcrl", "x")]), |_| None) else { panic!("accepted") };
        assert!(error.message.contains("sslcrl"));
    }

    #[test]
    fn an_address_that_libpq_would_go_to_is_not_passed_over() {
        let environment = |name: &str| (name == "PGHOSTADDR").then(|| "192.0.2.1".to_owned());
        let given = settings(&[("host", "h"), ("user", "u")]);
        let Err(error) = ConnInfo::resolve(&given, environment) else { panic!("accepted") };
        assert!(error.message.contains("PGHOSTADDR"));
    }

    #[test]
    fn the_first_line_that_matches_gives_the_password() {
        let text = "# a:b\nh:5432:*:u:first\n*:*:*:*:pa\\:ss:word\n";
        assert_eq!(find_password(text, &["h", "5432", "d", "u"]).as_deref(), Some("first"));
        assert_eq!(find_password(text, &["g", "5432", "d", "u"]).as_deref(), Some("pa:ss:word"));
        assert_eq!(find_password("localhost:1:d:u:p", &["/run/x", "1", "d", "u"]).as_deref(), Some("p"));
        assert_eq!(find_password("h:1:d:u:p", &["h", "2", "d", "u"]), None);
    }

    #[test]
    fn a_service_is_one_section() {
        let text = "[a]\nhost=x\n# no\n[b]\nport = 7\n[c]\nport=8\n";
        assert_eq!(section(text, "b").unwrap(), settings(&[("port", "7")]));
        assert_eq!(section(text, "d"), None);
    }

    #[test]
    fn no_timeout_is_no_limit() {
        let timeout = |text| {
            let given = settings(&[("host", "h"), ("user", "u"), ("connect_timeout", text)]);
            ConnInfo::resolve(&given, |_| None).unwrap().connect_timeout
        };
        assert_eq!(timeout("0"), None);
        assert_eq!(timeout("3"), Some(Duration::from_secs(3)));
        assert_eq!(timeout(""), Some(Duration::from_secs(CONNECT_TIMEOUT_S)));
    }

    #[test]
    fn who_is_not_said_is_the_user_of_the_operating_system_and_not_of_the_shell() {
        let shell = |name: &str| (name == "USER").then(|| "somebody else".to_owned());
        let found = ConnInfo::resolve(&settings(&[("host", "h")]), shell).map(|found| found.user).ok();
        assert_eq!(found, operating_systems_user().ok());
    }

    #[test]
    fn a_mode_that_gives_way_is_refused() {
        let given = settings(&[("host", "h"), ("user", "u"), ("sslmode", "prefer")]);
        assert!(ConnInfo::resolve(&given, |_| None).is_err());
    }
}
