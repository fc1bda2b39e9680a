//! What a message of the log says about statements and sessions. Texts of PostgreSQL 13 to 18 in English (`postgres.c`,
//! `postinit.c`).

use crate::call::Protocol;

/// A message that is of use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Said<'a> {
    /// A statement, with its duration if it is over. `statement: TEXT`, `execute NAME: TEXT`.
    Statement { protocol: Protocol, name: &'a str, text: &'a str, us: Option<u64> },
    /// `parse NAME: TEXT`, `bind NAME: TEXT`: the beginning of an execution.
    Prelude { text: &'a str, us: u64 },
    /// Later rows of an execution.
    Fetch,
    /// The duration of what was said before.
    Duration { us: u64 },
    /// A session has logged in.
    Authorized { user: &'a str, database: &'a str, application: &'a str },
    /// A session begins that has not logged in.
    Received { host: &'a str },
    /// A session has ended.
    Disconnected,
    /// Anything else.
    Other,
}

/// Reads a message of severity LOG.
pub(crate) fn said(message: &str) -> Said<'_> {
    let Some(rest) = message.strip_prefix("duration: ") else { return untimed(message) };
    let Some((number, rest)) = rest.split_once(" ms") else { return Said::Other };
    let Some(us) = microseconds(number) else { return Said::Other };
    let Some(rest) = rest.strip_prefix("  ") else {
        return if rest.is_empty() { Said::Duration { us } } else { Said::Other };
    };
    if let Some((_, text)) = rest.strip_prefix("parse ").or_else(|| rest.strip_prefix("bind ")).and_then(named) {
        return Said::Prelude { text, us };
    }
    match untimed(rest) {
        Said::Statement { protocol, name, text, .. } => Said::Statement { protocol, name, text, us: Some(us) },
        Said::Fetch => Said::Fetch,
        _ => Said::Other,
    }
}

fn untimed(message: &str) -> Said<'_> {
    if let Some(text) = message.strip_prefix("statement: ") {
        return Said::Statement { protocol: Protocol::Text, name: "", text, us: None };
    }
    if let Some(rest) = message.strip_prefix("execute ") {
        if rest.starts_with("fetch from ") {
            return Said::Fetch;
        }
        let Some((name, text)) = named(rest) else { return Said::Other };
        // A portal's name follows the statement's.
        let name = name.split_once('/').map_or(name, |(name, _)| name);
        return match name {
            "<unnamed>" => Said::Statement { protocol: Protocol::Unnamed, name: "", text, us: None },
            name => Said::Statement { protocol: Protocol::Named, name, text, us: None },
        };
    }
    if let Some(rest) = message.strip_prefix("connection authorized: ") {
        return Said::Authorized {
            user: word(rest, "user=", &[" database=", " application_name=", " SSL enabled", " GSS "]),
            database: word(rest, "database=", &[" application_name=", " SSL enabled", " GSS "]),
            application: word(rest, "application_name=", &[" SSL enabled", " GSS "]),
        };
    }
    if let Some(rest) = message.strip_prefix("connection received: ") {
        return Said::Received { host: word(rest, "host=", &[" port="]) };
    }
    if message.starts_with("disconnection: ") {
        return Said::Disconnected;
    }
    Said::Other
}

/// A name and what is behind its colon. Names of statements have no `: `, as drivers make them.
fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once(": ")
}

fn word<'a>(text: &'a str, key: &str, ends: &[&str]) -> &'a str {
    let Some(at) = text.find(key) else { return "" };
    let value = &text[at + key.len()..];
    let end = ends.iter().filter_map(|end| value.find(end)).min().unwrap_or(value.len());
    &value[..end]
}

/// `0.991` milliseconds in microseconds, without the rounding of a float. A number that is too large is the largest, which is then
/// [implausible](Assembler).
fn microseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let us = fraction.bytes().chain(*b"000").take(3).fold(0, |us, digit| 10 * us + u64::from(digit - b'0'));
    Some(whole.parse().unwrap_or(u64::MAX).saturating_mul(1000).saturating_add(us))
}

/// The first word of a text in capitals, behind blanks and comments; empty if there is none.
pub(crate) fn keyword(text: &str) -> String {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        } else {
            let end = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            return rest[..end].to_ascii_uppercase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement<'a>(protocol: Protocol, name: &'a str, text: &'a str, us: Option<u64>) -> Said<'a> {
        Said::Statement { protocol, name, text, us }
    }

    #[test]
    fn messages_are_told_apart() {
        let cases = [
            ("statement: SELECT 1;\nSELECT 2", statement(Protocol::Text, "", "SELECT 1;\nSELECT 2", None)),
            ("execute <unnamed>: SELECT $1", statement(Protocol::Unnamed, "", "SELECT $1", None)),
            ("execute s_1: SELECT a::int, 'b: c'", statement(Protocol::Named, "s_1", "SELECT a::int, 'b: c'", None)),
            ("execute s_1/C_2: SELECT 1", statement(Protocol::Named, "s_1", "SELECT 1", None)),
            ("execute fetch from S_1/C_2: SELECT 1", Said::Fetch),
            ("duration: 0.991 ms", Said::Duration { us: 991 }),
            ("duration: 12.5 ms  statement: COMMIT", statement(Protocol::Text, "", "COMMIT", Some(12_500))),
            ("duration: 1.000 ms  execute <unnamed>: X", statement(Protocol::Unnamed, "", "X", Some(1000))),
            ("duration: 0.101 ms  bind <unnamed>: SELECT $1", Said::Prelude { text: "SELECT $1", us: 101 }),
            ("duration: 0.102 ms  parse s: SELECT $1", Said::Prelude { text: "SELECT $1", us: 102 }),
            ("connection received: host=10.0.0.1 port=4355", Said::Received { host: "10.0.0.1" }),
            ("connection received: host=[local]", Said::Received { host: "[local]" }),
            ("disconnection: session time: 0:00:00.020 user=app database=shop host=[local]", Said::Disconnected),
            ("checkpoint starting: time", Said::Other),
            ("duration: a ms", Said::Other),
        ];
        for (message, wanted) in cases {
            assert_eq!(said(message), wanted, "{message}");
        }
    }

    #[test]
    fn a_session_that_has_logged_in_says_whose_it_is() {
        let message =
            "connection authorized: user=app database=my shop application_name=a b SSL enabled (protocol=TLSv1.3)";
        assert_eq!(said(message), Said::Authorized { user: "app", database: "my shop", application: "a b" });
        let message = "connection authorized: user=app database=shop";
        assert_eq!(said(message), Said::Authorized { user: "app", database: "shop", application: "" });
    }

    #[test]
    fn the_first_word_is_behind_comments() {
        assert_eq!(keyword(" /* a */ -- b\n begin;"), "BEGIN");
        assert_eq!(keyword("/* open"), "");
    }

    #[test]
    fn durations_of_any_letters_are_read_without_a_panic() {
        for number in ["1.00é", "1.é", "99999999999999999999.1", "1.-1", "+1.0", ".", "18446744073709551615.999"] {
            let _ = said(&format!("duration: {number} ms"));
        }
    }
}
