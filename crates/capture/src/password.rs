//! Which statements name a password, or another secret of the server or of what it connects to. They are not kept.
//!
//! The statement decides, not its letters: an application reads and writes its own columns called `password` all day. Kept is what is the application's
//! data, also hashes and the keys of pgcrypto's functions. Not kept are
//!
//! - `PASSWORD` with a literal behind it, and a command on a role with anything but NULL behind that word,
//! - options of servers, user mappings and subscriptions that are called as secrets are,
//! - `SET` and `set_config` of a parameter that is called so,
//! - connection strings with a password,
//!
//! also inside of literals, bodies and comments, and in parts that are to be put together.

use crate::entry::beginning;
use crate::lex::{Backslash, Kind, Token, is_ambiguous, tokens};

/// Literals within literals: those of EXECUTE in a body in a function. What is deeper is not kept if it names a secret at all.
const DEPTH_MAX: u32 = 4;
/// Parts of names of options and parameters whose values are secret.
const SECRET: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "pwd", "credential", "private_key", "access_key", "token"];
/// It says how passwords are stored, and has none.
const NOT_SECRET: &str = "password_encryption";
/// Without one of them a text is not looked at any further.
const SIGNS: [&str; 9] = ["passw", "passphrase", "secret", "identified", "://", "credential", "_key", "pwd", "token"];
/// Behind these a literal may be a part of a command.
const PUT_TOGETHER: [&str; 4] = ["EXECUTE", "FORMAT", "DO", "CONCAT"];
/// An address is looked at so far.
const ADDRESS_BYTES: usize = 512;
/// Keys of a connection string (PostgreSQL's documentation, "Parameter Key Words").
const CONNECTION: [&str; 12] = [
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "sslpassword",
    "service",
    "sslmode",
    "options",
    "application_name",
    "connect_timeout",
];

/// Whether a statement names a secret of the server, or of what it connects to.
pub fn has_password(text: &str) -> bool {
    SIGNS.iter().any(|sign| contains(text, sign)) && in_text(text, 0)
}

/// Whether the values of a statement have such a secret: those of a function that connects or that sets a parameter.
pub fn values_have_password<'a>(text: &str, values: impl Iterator<Item = &'a str>) -> bool {
    let (connects, sets) = (contains(text, "dblink"), contains(text, "set_config"));
    (connects || sets)
        && values.into_iter().any(|value| (connects && names_password(value)) || (sets && is_secret_name(value)))
}

/// What was seen of a statement.
#[derive(Default)]
struct Seen {
    /// The words before, in capitals: the last one and the one before it. Signs are none.
    last: String,
    before: String,
    /// A command on roles, and one on servers, mappings or subscriptions.
    on_role: bool,
    on_server: bool,
    /// PASSWORD in a command on a role: what is behind it decides.
    awaited: bool,
    /// UPDATE: what SET sets is a column.
    updates: bool,
    /// The name that SET sets, while it is read.
    setting: Option<String>,
    /// Behind set_config and a bracket.
    sets_by_function: bool,
}

/// What the parts of a text come to that are put together: `'ALTER ROLE ' || … || ' PASSWORD '`.
#[derive(Default)]
struct Parts {
    any: bool,
    role: bool,
    password: bool,
}

fn in_text(text: &str, depth: u32) -> bool {
    in_reading(text, Backslash::Letter, depth) || (is_ambiguous(text) && in_reading(text, Backslash::Escape, depth))
}

fn in_reading(text: &str, backslash: Backslash, depth: u32) -> bool {
    let (mut seen, mut parts) = (Seen::default(), Parts::default());
    for token in tokens(text, backslash) {
        let part = &text[token.place.clone()];
        match token.kind {
            Kind::Blank => continue,
            Kind::Comment => {
                if is_secret_within(&text[token.inner.clone()], depth) {
                    return true;
                }
                continue;
            }
            Kind::Literal => {
                let content = token.content(text);
                if seen.is_secret_literal(&content, depth > 0)
                    || is_connection(&content)
                    || is_secret_within(&content, depth)
                {
                    return true;
                }
                parts.add(&content);
                seen.passes();
            }
            Kind::Word | Kind::Name => {
                if seen.word(&text[token.inner.clone()], &token) {
                    return true;
                }
                parts.any |= PUT_TOGETHER.iter().any(|word| seen.last == *word);
            }
            _ if part == ";" => {
                if seen.awaited {
                    return true;
                }
                seen = Seen::default();
            }
            _ => {
                if seen.sign(part) {
                    return true;
                }
                parts.any |= part == "|";
            }
        }
    }
    seen.awaited || (parts.any && parts.role && parts.password)
}

/// Whether a literal or a comment has a statement that names a secret.
fn is_secret_within(content: &str, depth: u32) -> bool {
    if !SIGNS.iter().any(|sign| contains(content, sign)) {
        return false;
    }
    if depth >= DEPTH_MAX {
        return has_command(content);
    }
    in_text(content, depth + 1)
}

/// Whether words of a command stand in a text, in whatever order.
fn has_command(text: &str) -> bool {
    (contains(text, "create") || contains(text, "alter"))
        && ["role", "user", "group", "server", "mapping", "subscription"].iter().any(|word| contains(text, word))
}

impl Seen {
    /// A literal comes. Whether it is a secret by what stands before it.
    fn is_secret_literal(&mut self, content: &str, within: bool) -> bool {
        // In a text that may be prose, the word alone says nothing.
        let is_command = self.on_role || self.on_server || !within;
        (self.last == "PASSWORD" && is_command)
            || (self.on_server && (is_secret_name(&self.last) || names_password(content)))
            || self.awaited
            || (self.sets_by_function && is_secret_name(content))
            || (self.last.starts_with("DBLINK") && names_password(content))
            || (self.last == "PROGRAM" && names_password(content))
    }

    /// A word comes, or a name in quotes. Whether that tells of a secret.
    fn word(&mut self, word: &str, token: &Token) -> bool {
        let word = word.to_ascii_uppercase();
        if std::mem::take(&mut self.awaited) && word != "NULL" {
            return true;
        }
        let is_command = matches!(self.before.as_str(), "CREATE" | "ALTER");
        let is_made = matches!(self.last.as_str(), "CREATE" | "ALTER");
        self.on_role |= is_made && matches!(word.as_str(), "ROLE" | "USER" | "GROUP");
        self.on_server |= is_made && matches!(word.as_str(), "SERVER" | "FOREIGN" | "SUBSCRIPTION");
        self.on_server |= is_command && self.last == "USER" && word == "MAPPING";
        self.updates |= word == "UPDATE";
        if self.on_role && self.last == "IDENTIFIED" && word == "BY" {
            return true;
        }
        self.awaited = self.on_role && token.kind == Kind::Word && word == "PASSWORD";
        if let Some(name) = &mut self.setting {
            if word == "TO" {
                let secret = is_secret_name(name);
                self.setting = None;
                if secret {
                    return true;
                }
            } else {
                // SET SESSION my.x: of several words the last is the name.
                if !name.ends_with('.') {
                    name.clear();
                }
                name.push_str(&word);
            }
        }
        if word == "SET" && !self.updates {
            self.setting = Some(String::new());
        }
        self.sets_by_function = false;
        self.before = std::mem::replace(&mut self.last, word);
        false
    }

    /// Any other part comes. Whether that tells of a secret.
    fn sign(&mut self, sign: &str) -> bool {
        if std::mem::take(&mut self.awaited) {
            return true;
        }
        match (sign, self.setting.take()) {
            ("=", Some(name)) if is_secret_name(&name) => return true,
            (".", Some(mut name)) => {
                name.push('.');
                self.setting = Some(name);
                return false;
            }
            _ => (),
        }
        if sign == "(" && (self.last == "SET_CONFIG" || self.last.starts_with("DBLINK")) {
            self.sets_by_function = self.last == "SET_CONFIG";
            return false;
        }
        // dblink('name', 'connection string') is not the only form: a comma keeps what was called.
        if sign != "," || !self.last.starts_with("DBLINK") {
            self.passes();
        }
        false
    }

    /// What was said by the words before is over.
    fn passes(&mut self) {
        (self.awaited, self.sets_by_function, self.setting) = (false, false, None);
        if !self.last.starts_with("DBLINK") {
            self.last.clear();
            self.before.clear();
        }
    }
}

impl Parts {
    fn add(&mut self, content: &str) {
        if !contains(content, "password") && !contains(content, "alter") && !contains(content, "create") {
            return;
        }
        let mut seen = Seen::default();
        for token in tokens(content, Backslash::Letter) {
            if token.kind == Kind::Word {
                let _ = seen.word(&content[token.place.clone()], &token);
                self.password |= seen.last == "PASSWORD";
            }
        }
        self.role |= seen.on_role;
    }
}

/// Whether an option or a parameter of this name has a secret.
fn is_secret_name(name: &str) -> bool {
    name.len() <= 128 && !name.eq_ignore_ascii_case(NOT_SECRET) && SECRET.iter().any(|part| contains(name, part))
}

/// Whether the whole of a literal is a connection string that has a password, or the place for one.
fn is_connection(content: &str) -> bool {
    if contains(content, "://") && has_password_in_address(content) {
        return true;
    }
    contains(content, "password") && has_password_among_pairs(content)
}

/// Whether a literal that goes to a function or an option which connects names a password in any form.
fn names_password(content: &str) -> bool {
    let pair = |at: usize| content[at..].trim_start().starts_with('=');
    has_password_in_address(content)
        || found(content, "password").any(|at| pair(at + "password".len()))
        || found(content, "passwd").any(|at| pair(at + "passwd".len()))
}

/// `postgres://user:password@host`.
fn has_password_in_address(content: &str) -> bool {
    let ends_with = |before: &[u8], scheme: &str| {
        before.len().checked_sub(scheme.len()).is_some_and(|at| before[at..].eq_ignore_ascii_case(scheme.as_bytes()))
    };
    found(content, "://").any(|at| {
        let before = &content.as_bytes()[..at];
        if !ends_with(before, "postgres") && !ends_with(before, "postgresql") {
            return false;
        }
        let rest = beginning(&content[at + 3..], ADDRESS_BYTES);
        let address = &rest[..rest.find([' ', '\'', '"', '\n']).unwrap_or(rest.len())];
        let authority = &address[..address.find(['/', '?']).unwrap_or(address.len())];
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        user.split_once(':').is_some_and(|(_, password)| !password.is_empty())
            || found(address, "password=").any(|at| address[..at].ends_with(['?', '&']))
    })
}

/// `host=… password=…`, and nothing else.
fn has_password_among_pairs(content: &str) -> bool {
    let (mut rest, mut password) = (content.trim(), false);
    while !rest.is_empty() {
        let Some((key, value)) = rest.split_once('=') else { return false };
        let key = key.trim();
        if !CONNECTION.iter().any(|known| key.eq_ignore_ascii_case(known)) {
            return false;
        }
        password |= contains(key, "password");
        rest = after_value(value.trim_start()).trim_start();
    }
    password
}

/// What is behind the value of a pair: up to a blank, or to its second apostrophe.
fn after_value(value: &str) -> &str {
    let is_quoted = value.starts_with('\'');
    let mut letters = value.char_indices().skip(usize::from(is_quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '\'' if is_quoted => return &value[at + 1..],
            _ if !is_quoted && letter.is_ascii_whitespace() => return &value[at..],
            _ => (),
        }
    }
    ""
}

/// Whether a text has some letters, in capitals or not. The letters are ASCII, the first one is lower case or a sign.
fn contains(text: &str, letters: &str) -> bool {
    found(text, letters).next().is_some()
}

/// Where a text has some letters.
fn found<'a>(text: &'a str, letters: &'a str) -> impl Iterator<Item = usize> + 'a {
    let (bytes, letters) = (text.as_bytes(), letters.as_bytes());
    let first = letters[0];
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), bytes)
        .filter(move |at| bytes[*at..].get(..letters.len()).is_some_and(|part| part.eq_ignore_ascii_case(letters)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statements_that_name_a_secret_are_found() {
        for text in [
            "ALTER ROLE app PASSWORD 'x'",
            "create user a with encrypted password 'x'",
            "ALTER USER \"a;b\" VALID UNTIL 'infinity' PASSWORD 'x'",
            "CREATE GROUP g PASSWORD E'x\\'y'",
            "ALTER ROLE a PASSWORD $$x$$",
            "ALTER ROLE a PASSWORD $t$x$t$",
            "ALTER ROLE a PASSWORD U&'\\0078'",
            "ALTER ROLE a /* new */ PASSWORD -- it is\n 'x'",
            "/* the app's */ CREATE ROLE a LOGIN PASSWORD 'x'",
            "SELECT 1; CREATE ROLE a PASSWORD 'x'",
            "ALTER ROLE a PASSWORD 'x",
            "ALTER ROLE a PASSWORD $1",
            "/* ALTER ROLE a PASSWORD 'old' */ SELECT 1",
            "ALTER USER a IDENTIFIED BY secretly",
            "CREATE USER MAPPING FOR a SERVER b OPTIONS (user 'x', password 'y')",
            "ALTER USER MAPPING FOR a SERVER b OPTIONS (SET \"password\" 'y')",
            "CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (aws_secret_access_key 'y')",
            "ALTER SERVER s OPTIONS (ADD token 'y')",
            "CREATE SUBSCRIPTION s CONNECTION 'host=h password=y' PUBLICATION p",
            "CREATE SUBSCRIPTION s CONNECTION 'postgresql://u:y@h/d' PUBLICATION p",
            "SELECT dblink_connect('host=x password=y')",
            "SELECT * FROM dblink('c', 'postgres://u:y@h/d') AS t(a int)",
            "SELECT public.dblink_exec('dbname=d password = ''y z''', 'SELECT 1')",
            "SELECT f('host=h user=u password=y')",
            "SELECT f('postgres://h/d?user=u&password=y')",
            "COPY t FROM PROGRAM 'psql \"host=h password=y\" -c table'",
            "ALTER SYSTEM SET primary_conninfo = 'host=h password=y'",
            "SET app.db_password = 'y'",
            "SET LOCAL my.api_secret TO y",
            "ALTER DATABASE d SET my.password = 'y'",
            "ALTER ROLE a IN DATABASE d SET vault.token = 'y'",
            "SELECT set_config('app.password', 'y', false)",
            "select pg_catalog.set_config( 'app.passphrase', $1, true)",
            "DO $$BEGIN EXECUTE 'ALTER ROLE a PASSWORD ''b'''; END$$",
            "DO $$BEGIN CREATE USER a PASSWORD 'b'; END$$",
            "DO 'BEGIN ALTER ROLE a PASSWORD ''b''; END'",
            "DO $$BEGIN EXECUTE format('ALTER ROLE %I PASSWORD %L', 'a', 'b'); END$$",
            "DO $$BEGIN EXECUTE 'ALTER ROLE ' || r || ' PASSWORD ' || quote_literal('b'); END$$",
            "DO $$BEGIN PERFORM set_config('app.password', 'b', false); SET my.password = 'b'; END$$",
            "SELECT format('ALTER USER %I PASSWORD %L', 'a', 'b')",
            "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN EXECUTE $q$ ALTER ROLE a PASSWORD 'b' $q$; END $f$",
            "SELECT cron.schedule('n', '* * * * *', 'ALTER ROLE a PASSWORD ''b''')",
            "SELECT 'a\\'; ALTER ROLE a PASSWORD ''b''; --'",
        ] {
            assert!(has_password(text), "{text}");
        }
    }

    #[test]
    fn statements_about_an_applications_own_columns_are_kept() {
        for text in [
            "SELECT password_hash FROM accounts WHERE id = $1",
            "UPDATE u SET password = $1",
            "UPDATE users SET password = '$2b$12$abc', updated_at = now() WHERE id = 5",
            "SELECT \"users\".\"id\", \"users\".\"encrypted_password\", \"users\".\"created_at\" FROM \"users\" WHERE \"users\".\"email\" = $1",
            "insert into \"users\" (\"name\", \"password\", \"created_at\") values ('a', 'b', now()) on conflict (id) do update set password = 'b'",
            "SELECT id, password_reset_token FROM app_user WHERE created_at > $1",
            "SELECT \"User\".\"password\", \"User\".\"createdAt\" FROM \"public\".\"User\"",
            "SELECT id FROM users WHERE password = crypt('typed', password)",
            "SELECT pgp_sym_encrypt('data', 'key'), pgp_sym_decrypt(secret, 'key') FROM created_users",
            "INSERT INTO server_group (alter_ego, password) VALUES ('user', '{\"password\": \"x\", \"user\": {\"role\": 1}}')",
            "INSERT INTO posts (body) VALUES ('my password ''hunter2'' is a joke about a created user')",
            "CREATE TABLE users (id int, password text, created_at timestamptz)",
            "ALTER TABLE users ADD COLUMN password_digest text DEFAULT 'x'",
            "ALTER TABLE users ALTER password SET DEFAULT 'x'",
            "CREATE ROLE app",
            "ALTER ROLE app PASSWORD NULL",
            "DROP USER password_manager",
            "CREATE USER a; SELECT password FROM users",
            "SET password_encryption = 'scram-sha-256'",
            "SELECT set_config('password_encryption', 'md5', true)",
            "SELECT * FROM dblink('conn', 'SELECT password FROM users') AS t(a text)",
            "SELECT dblink_connect('host=x user=y')",
            "SELECT f('https://u:p@example.org/')",
            "GRANT SELECT (password) ON users TO app",
            "COMMENT ON COLUMN users.password IS 'created by the user'",
        ] {
            assert!(!has_password(text), "{text}");
        }
    }

    #[test]
    fn a_secret_among_values_is_found_where_it_is_used_to_connect_or_set() {
        let cases: [(&str, &[&str], bool); 6] = [
            ("SELECT dblink_connect($1)", &["host=h password=y"], true),
            ("SELECT dblink_connect($1, $2)", &["c", "postgresql://u:y@h"], true),
            ("SELECT dblink_connect($1)", &["host=h user=u"], false),
            ("SELECT set_config($1, $2, false)", &["app.password", "y"], true),
            ("SELECT set_config($1, $2, false)", &["app.user", "y"], false),
            ("INSERT INTO targets VALUES ($1)", &["host=h password=y"], false),
        ];
        for (text, values, wanted) in cases {
            assert_eq!(values_have_password(text, values.iter().copied()), wanted, "{text} {values:?}");
        }
    }

    #[test]
    fn literals_within_literals_have_an_end() {
        let mut text = "ALTER ROLE a PASSWORD 'b'".to_owned();
        for _ in 0..8 {
            text = format!("DO '{}'", text.replace('\'', "''"));
        }
        assert!(has_password(&text));
    }

    #[test]
    fn twice_the_text_takes_twice_the_time_whatever_it_has() {
        let texts: [fn(usize) -> String; 5] = [
            |count| format!("SELECT '{}', 'password'", "\\'".repeat(count)),
            |count| format!("SELECT 'password {}'", "postgres://".repeat(count)),
            |count| format!("SELECT dblink('{}')", "password  ".repeat(count)),
            |count| format!("SELECT 'password {}'", "'' ".repeat(count)),
            |count| format!("ALTER SYSTEM SET {}password", "a.".repeat(count)),
        ];
        for text in texts {
            let cpu_ns = |text: &str| {
                let time = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
                let begin = time();
                let _ = has_password(text);
                let spent = time() - begin;
                1_000_000_000 * spent.tv_sec + spent.tv_nsec
            };
            let least = |count: usize| {
                let text = text(count);
                (0..3).map(|_| cpu_ns(&text)).min().unwrap_or(0)
            };
            let (once, twice) = (least(2_000), least(4_000));
            assert!(twice < 3 * once + 1_000_000, "{} : {once} ns, {twice} ns", &text(3));
        }
    }

    proptest! {
        #[test]
        fn a_password_of_any_letters_is_found(
            name in "[a-z]{1,6}",
            password in "[ -~]{0,20}",
            blank in "( |\n|/\\* a \\*/|-- it's\n){1,3}",
            form in 0..4,
        ) {
            let literal = match form {
                0 => format!("'{}'", password.replace('\'', "''")),
                1 => format!("E'{}'", password.replace('\\', "\\\\").replace('\'', "\\'")),
                2 => format!("$q${}$q$", password.replace('$', "")),
                _ => format!("U&'{}'", password.replace('\'', "''").replace('\\', "\\\\")),
            };
            let text = format!("ALTER{blank}ROLE {name}{blank}PASSWORD{blank}{literal}");
            prop_assert!(has_password(&text), "{}", text);
            let within = format!("DO $body$ BEGIN EXECUTE '{}'; END $body$", text.replace('\'', "''"));
            prop_assert!(has_password(&within), "{}", within);
        }

        #[test]
        fn any_text_is_judged_without_a_panic(text in "[ -~ä']{0,80}") {
            let _ = has_password(&text);
            let _ = has_password(&format!("dblink password://{text}"));
        }
    }
}
