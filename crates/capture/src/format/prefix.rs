//! `log_line_prefix`: what stands before each line of a log in stderr's format (documentation, "What to Log").

use std::borrow::Cow;
use std::net::IpAddr;

use crate::entry::{Entry, beginning, host_and_port, transaction_of};
use crate::time::{Zone, instant};

/// What may follow a prefix, from `elog.c`. The first begin an entry, the others belong to the one before.
const SEVERITIES: [&str; 12] =
    ["LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4"];
const ADDITIONS: [&str; 7] = ["DETAIL", "HINT", "QUERY", "CONTEXT", "LOCATION", "STATEMENT", "BACKTRACE"];

/// Seconds from 1970 to the year 10000, which times with a year of four digits do not reach.
const SECONDS_MAX: i64 = 253_402_300_800;
/// Only the beginning of a line can be its prefix: names of roles, databases and applications have 63 bytes, hosts 255.
const HEAD_BYTES: usize = 1024;
/// A severity and its colon; blanks may stand before it.
const SEVERITY_BYTES: usize = 32;
/// Parts that are tried on one line. A line that takes more is none of this prefix: without this limit a line of many colons would take hours.
const TRIES_MAX: u32 = 4096;

/// A part of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// An escape by its letter.
    Escape(char),
}

/// A prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix {
    text: String,
    parts: Vec<Part>,
    /// Any word in capitals counts as a severity: the log is in another language, and that is to be said.
    of_any_language: bool,
}

/// A line behind its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// What the prefix says; severity and message too.
    pub entry: Entry<'a>,
    /// Whether it belongs to the entry before, and is not one.
    pub addition: bool,
}

impl Prefix {
    /// Reads a setting. An error says what of it is not known.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut letters = text.chars();
        let literal = |parts: &mut Vec<Part>, letter: char| match parts.last_mut() {
            Some(Part::Text(text)) => text.push(letter),
            _ => parts.push(Part::Text(letter.to_string())),
        };
        while let Some(letter) = letters.next() {
            if letter != '%' {
                literal(&mut parts, letter);
                continue;
            }
            // A width pads with blanks, which are no part of the value.
            match letters.find(|letter| !(letter.is_ascii_digit() || *letter == '-')) {
                Some('%') => literal(&mut parts, '%'),
                Some(escape) if "abcdehilmnpqrstuvxPQL".contains(escape) => parts.push(Part::Escape(escape)),
                Some(escape) => return Err(format!("`%{escape}` is no escape of log_line_prefix")),
                None => return Err("it ends with a lone `%`".to_owned()),
            }
        }
        Ok(Self { text: text.to_owned(), parts, of_any_language: false })
    }

    /// How many parts it has.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Two escapes that touch, so that nothing tells where the value of the first ends. That of `%e` alone has a length of its own.
    pub(crate) fn touching(&self) -> Option<(char, char)> {
        let escapes = self.parts.iter().filter(|part| **part != Part::Escape('q'));
        escapes.clone().zip(escapes.skip(1)).find_map(|pair| match pair {
            (Part::Escape(first), Part::Escape(second)) if *first != 'e' => Some((*first, *second)),
            _ => None,
        })
    }

    /// Whether it has a time.
    pub(crate) fn has_time(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Escape('t' | 'm' | 'n')))
    }

    /// What it lacks of what a log must say by itself: the time, or whose a line is.
    pub(crate) fn lacking(&self) -> Option<&'static str> {
        if !self.has_time() {
            return Some("it has no time (`%m`, `%n` or `%t`)");
        }
        let has_process = self.parts.iter().any(|part| matches!(part, Part::Escape('p' | 'c')));
        (!has_process).then_some("it has no process (`%p`) and no session (`%c`)")
    }

    /// The same for a log in another language.
    pub(crate) fn of_any_language(self) -> Self {
        Self { of_any_language: true, ..self }
    }

    /// As it is set.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether its time has fractions of seconds.
    pub(crate) fn has_fractions(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Escape('m' | 'n')))
    }

    /// Reads a line. None if it does not begin with this prefix and a severity.
    pub(crate) fn read<'a>(&self, line: &'a str) -> Option<Line<'a>> {
        self.read_counted(line).0
    }

    /// The same, and how many parts were tried.
    fn read_counted<'a>(&self, line: &'a str) -> (Option<Line<'a>>, u32) {
        let head = beginning(line, HEAD_BYTES);
        let mut attempt = Attempt { line, head, of_any_language: self.of_any_language, tries: 0 };
        (attempt.parts(&self.parts, 0, Entry::default()), attempt.tries)
    }
}

/// A line that is read by a prefix.
struct Attempt<'a> {
    line: &'a str,
    /// The part of it that the prefix can be in.
    head: &'a str,
    of_any_language: bool,
    tries: u32,
}

impl<'a> Attempt<'a> {
    /// Reads the line from a place on by the rest of a prefix. What is a number, an instant or a host ends by itself, a name at the text that follows;
    /// the name of an application alone may hold that text, so that each place is tried for it.
    fn parts(&mut self, left: &[Part], at: usize, mut entry: Entry<'a>) -> Option<Line<'a>> {
        self.tries += 1;
        if self.tries > TRIES_MAX {
            return None;
        }
        let Some((part, after)) = left.split_first() else { return self.severity(at, entry) };
        let rest = &self.head[at..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        match part {
            Part::Text(text) => {
                if rest.starts_with(text.as_str()) {
                    return self.parts(after, at + text.len(), entry);
                }
                // Blanks before and behind a value that is padded.
                let text = text.trim_start_matches(' ');
                rest[blanks..].starts_with(text).then_some(())?;
                self.parts(after, at + blanks + text.len(), entry)
            }
            // Processes without a session end the prefix here.
            Part::Escape('q') => self.parts(after, at, entry.clone()).or_else(|| self.severity(at, entry)),
            Part::Escape(escape @ ('t' | 'm')) => {
                let found = instant(&rest[blanks..])?;
                // `%m` has milliseconds, and `%t` has none.
                (found.fractions == (*escape == 'm')).then_some(())?;
                (entry.time_us, entry.zone) = (found.us, found.zone);
                self.parts(after, self.head.len() - found.rest.len(), entry)
            }
            Part::Escape('s') => {
                let Some(found) = instant(&rest[blanks..]) else { return self.parts(after, at, entry) };
                entry.session_begin_us = Some(found.us);
                self.parts(after, self.head.len() - found.rest.len(), entry)
            }
            Part::Escape(escape) => {
                if let Some(length) = own_length(*escape, &rest[blanks..]) {
                    let end = at + blanks + length;
                    take(*escape, &self.head[at + blanks..end], &mut entry)?;
                    return self.parts(after, end, entry);
                }
                let places = self.places(*escape, after, at);
                places.into_iter().find_map(|end| {
                    let mut tried = entry.clone();
                    take(*escape, self.head[at..end].trim_matches(' '), &mut tried)?;
                    self.parts(after, end, tried)
                })
            }
        }
    }

    /// Where a value may end that does not end by itself: before the text that follows, or before a severity.
    fn places(&self, escape: char, after: &[Part], at: usize) -> Vec<usize> {
        let rest = &self.head[at..];
        let next = after.iter().find_map(|part| match part {
            Part::Text(text) => {
                Some(text.trim_start_matches(' ')).map(|inner| if inner.is_empty() { text } else { inner })
            }
            Part::Escape('q') => None,
            Part::Escape(_) => Some(""),
        });
        let mut places: Vec<usize> = match next {
            Some("") => (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).collect(),
            Some(text) => rest.match_indices(text).map(|(at, _)| at).collect(),
            None => severity_places(rest),
        };
        if escape == 'h' {
            places = host_place(rest, &places).into_iter().collect();
        } else if escape != 'a' && next.is_some_and(|text| !text.is_empty()) {
            // A value that is padded, or none.
            let blanks = rest.len() - rest.trim_start_matches(' ').len();
            let first = places.first().copied();
            let padded = places.into_iter().find(|place| *place >= blanks && first.is_some_and(|first| first < blanks));
            places = first.into_iter().chain(padded).collect();
        }
        places.into_iter().map(|place| at + place).collect()
    }

    fn severity(&self, at: usize, mut entry: Entry<'a>) -> Option<Line<'a>> {
        let rest = &self.line[at..];
        let (word, _) = beginning(rest, SEVERITY_BYTES).split_once(":  ")?;
        let message = &rest[word.len() + 3..];
        let word = word.trim_start_matches(' ');
        let addition = ADDITIONS.contains(&word);
        let is_word =
            || !word.is_empty() && word.chars().all(|letter| letter.is_alphabetic() && !letter.is_lowercase());
        let is_known = addition || SEVERITIES.contains(&word) || word == "DEBUG5";
        if !(is_known || self.of_any_language && is_word()) {
            return None;
        }
        entry.severity = Cow::Borrowed(word);
        entry.message = Cow::Borrowed(message);
        Some(Line { entry, addition })
    }
}

/// Where severities begin, each for the first time.
fn severity_places(rest: &str) -> Vec<usize> {
    let words = SEVERITIES.iter().chain(&ADDITIONS);
    words
        .filter_map(|severity| rest.find(&format!("{severity}:  ")))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Where a host ends: behind the longest address, else at the first place. An IPv6 address has colons, which may also be what follows.
fn host_place(rest: &str, places: &[usize]) -> Option<usize> {
    const ADDRESS_BYTES: usize = 64;
    let is_address = |place: usize| {
        let address = rest[..place].trim_matches(' ');
        let (address, zone) = address.split_once('%').unwrap_or((address, ""));
        !zone.contains(':') && address.parse::<IpAddr>().is_ok()
    };
    let near = places.iter().take_while(|place| **place <= ADDRESS_BYTES);
    near.filter(|place| is_address(**place)).max().or(places.first()).copied()
}

/// Length of a value that ends by itself, by its letters; none if its end is where the text that follows begins.
fn own_length(escape: char, rest: &str) -> Option<usize> {
    let run = |allowed: fn(&u8) -> bool| rest.bytes().take_while(allowed).count();
    match escape {
        'p' | 'l' | 'x' | 'P' => Some(run(u8::is_ascii_digit)),
        'Q' => Some(run(|byte| byte.is_ascii_digit() || *byte == b'-')),
        'n' => Some(run(|byte| byte.is_ascii_digit() || *byte == b'.')),
        'c' => Some(run(|byte| byte.is_ascii_hexdigit() || *byte == b'.')),
        'v' => Some(run(|byte| byte.is_ascii_digit() || *byte == b'/')),
        'e' => Some(run(u8::is_ascii_alphanumeric)),
        'r' => remote_length(rest),
        _ => None,
    }
}

/// Length of `host(port)` and of `[local]`; none for anything else.
fn remote_length(rest: &str) -> Option<usize> {
    const LOCAL: &str = "[local]";
    if rest.starts_with(LOCAL) {
        return Some(LOCAL.len());
    }
    let is_of_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".:%_-".contains(byte);
    let host = rest.bytes().take_while(is_of_host).count();
    let port = rest[host..].strip_prefix('(')?;
    let digits = port.bytes().take_while(u8::is_ascii_digit).count();
    port[digits..].starts_with(')').then_some(host + digits + 2)
}

/// Puts a value where it belongs. None if it cannot be one.
fn take<'a>(escape: char, value: &'a str, entry: &mut Entry<'a>) -> Option<()> {
    let some = |value: &'a str| (!value.is_empty() && value != "[unknown]").then_some(Cow::Borrowed(value));
    match escape {
        'p' => entry.pid = Some(value.parse().ok()?),
        'l' => entry.line = Some(value.parse().ok()?),
        'n' => {
            let (seconds, fraction) = value.split_once('.').unwrap_or((value, "0"));
            let fraction_us = format!("{fraction:0<6}").get(..6)?.parse::<i64>().ok()?;
            let seconds = seconds.parse::<i64>().ok().filter(|seconds| (0..SECONDS_MAX).contains(seconds))?;
            (entry.time_us, entry.zone) = (seconds * 1_000_000 + fraction_us, Zone::Known);
        }
        'c' => {
            let (begin, pid) = value.split_once('.')?;
            u64::from_str_radix(begin, 16).ok()?;
            entry.pid = Some(u32::from_str_radix(pid, 16).ok()?);
            entry.session = some(value);
        }
        'u' => entry.user = some(value),
        'd' => entry.database = some(value),
        'a' => entry.application = some(value),
        // What is a time is what another program has put before the line.
        'h' if instant(value).is_some() => return None,
        'h' => entry.host = some(value),
        'r' => {
            let (host, port) = host_and_port(value);
            (entry.host, entry.port) = (some(host), port);
        }
        'v' => entry.transaction = transaction_of(value),
        'i' => entry.tag = some(value),
        'e' => entry.sqlstate = (value.len() == 5).then_some(Cow::Borrowed(value)),
        _ => (),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(prefix: &str, line: &'a str) -> Entry<'a> {
        let found = Prefix::parse(prefix).unwrap().read(line);
        found.unwrap_or_else(|| panic!("{prefix} reads {line}")).entry
    }

    #[test]
    fn prefixes_are_read_with_what_they_have() {
        let entry = read("%m [%p] %q%u@%d ", "2026-11-25 07:04:42.123 UTC [41] app@shop LOG:  statement: SELECT 1");
        assert_eq!(
            (entry.pid, entry.user.as_deref(), entry.database.as_deref()),
            (Some(41), Some("app"), Some("shop"))
        );
        assert_eq!(entry.message, "statement: SELECT 1");
        let entry = read("%m [%p] %q%u@%d ", "2026-11-25 07:04:42.123 UTC [41] LOG:  checkpoint starting: time");
        assert_eq!((entry.user, entry.message.as_ref()), (None, "checkpoint starting: time"));
        let entry =
            read("%t:%r:%u@%d:[%p]:", "2026-11-25 07:04:42 UTC:10.0.0.1(4355):app@shop:[7]:LOG:  execute s: a:b");
        assert_eq!((entry.host.as_deref(), entry.pid), (Some("10.0.0.1"), Some(7)));
        let entry = read("%t:%r:%u@%d:[%p]:", "2026-11-25 07:04:42 UTC::@:[7]:LOG:  checkpoint complete");
        assert_eq!((entry.host, entry.user, entry.pid), (None, None, Some(7)));
        let entry = read("%n %c %l %v %a|", "1795590282.123 6563a1.2f 17 4/12 my app: x|ERROR:  division by zero");
        assert_eq!((entry.time_us, entry.pid, entry.line), (1_795_590_282_123_000, Some(47), Some(17)));
        assert_eq!((entry.transaction, entry.application.as_deref()), (Some(12), Some("my app: x")));
        let entry = read("%m %-8p %10u ", "2026-11-25 07:04:42.123 UTC 41             app LOG:  x");
        assert_eq!((entry.pid, entry.user.as_deref()), (Some(41), Some("app")));
    }

    #[test]
    fn additions_belong_to_the_entry_before_and_other_lines_are_none() {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        assert!(prefix.read("2026-11-25 07:04:42.123 UTC [41] DETAIL:  parameters: $1 = 'x'").unwrap().addition);
        for line in ["", "\tFROM t", "pg_ctl: done", "2026-11-25 07:04:42.123 UTC [41] SELECT:  1"] {
            assert_eq!(prefix.read(line), None, "{line}");
        }
    }

    #[test]
    fn escapes_that_touch_cannot_be_told_apart() {
        for (text, touching) in [
            ("%m [%p%l%x] ", Some(('p', 'l'))),
            ("%m %u%d%p ", Some(('u', 'd'))),
            ("%m%p ", Some(('m', 'p'))),
            ("%m [%p] %h%q%u ", Some(('h', 'u'))),
            ("%m %-8p%u ", Some(('p', 'u'))),
            ("%m [%p] %e%u ", None),
            ("%m [%p] %q%u@%d ", None),
            ("%m %p%%%l ", None),
        ] {
            assert_eq!(Prefix::parse(text).unwrap().touching(), touching, "{text}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_said() {
        for (text, why) in [("%m %p %k", "`%k`"), ("%m %p %", "lone")] {
            let error = Prefix::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        for (text, why) in [("%u ", Some("no time")), ("%m ", Some("no process")), ("%m %c ", None)] {
            let lacking = Prefix::parse(text).unwrap().lacking();
            assert_eq!(lacking.is_some(), why.is_some(), "{text}");
            assert!(lacking.is_none_or(|lacking| lacking.contains(why.unwrap())), "{text}");
        }
    }

    /// Lines as those of RDS whose statements have JSON with all that its prefix has: addresses, `@` and `:[`.
    fn laden(severity: &str, pairs: usize) -> String {
        let pair = |number| format!(r#"{{"addr":"10.0.0.{number}:5432","mail":"a{number}@b:[c"}},"#);
        let pairs: String = (0..pairs).map(pair).collect();
        format!(
            "2026-11-28 12:00:00 UTC:10.0.0.5(5555):app@shop:[100]:{severity}:  statement: INSERT INTO t VALUES ('[{pairs}]')"
        )
    }

    #[test]
    fn a_line_takes_as_many_tries_as_its_prefix_has_parts_whatever_its_length() {
        for text in super::super::detect::KNOWN_PREFIXES {
            let prefix = Prefix::parse(text).unwrap();
            for severity in ["LOG", "FEHLER"] {
                let (_, short) = prefix.read_counted(&laden(severity, 100));
                let (_, long) = prefix.read_counted(&laden(severity, 2000));
                assert_eq!(short, long, "{text}");
                assert!(long <= TRIES_MAX + 1, "{text}: {long}");
                if !text.contains("%a") {
                    let parts = u32::try_from(prefix.parts.len()).unwrap();
                    assert!(long <= parts + 2, "{text}: {long} tries of {parts} parts");
                }
            }
        }
        let entry_of = |line: &str| {
            let line = Prefix::parse("%t:%r:%u@%d:[%p]:").unwrap().read(line)?.entry.into_owned();
            Some((line.host?.into_owned(), line.user?.into_owned(), line.database?.into_owned(), line.pid?))
        };
        let wanted = ("10.0.0.5".to_owned(), "app".to_owned(), "shop".to_owned(), 100);
        assert_eq!(entry_of(&laden("LOG", 2000)), Some(wanted));
        assert_eq!(entry_of(&laden("FEHLER", 2000)), None);
    }

    #[test]
    fn words_of_other_languages_are_severities_only_where_the_log_is_in_one() {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        for word in ["FEHLER", "ОШИБКА", "エラー"] {
            let line = format!("2026-11-25 07:04:42.123 UTC [41] {word}:  x");
            assert_eq!(prefix.read(&line), None);
            assert_eq!(prefix.clone().of_any_language().read(&line).unwrap().entry.severity, word);
        }
        assert_eq!(prefix.of_any_language().read("2026-11-25 07:04:42.123 UTC [41] now: and:  x"), None);
    }

    #[test]
    fn names_of_applications_that_are_made_to_be_tried_have_a_limit() {
        let prefix = Prefix::parse("%t [%p]: app=%a,a=%a,b=%a,c=%a ").unwrap();
        let line = format!("2026-11-28 12:00:00 UTC [7]: app={} LOG:  x", ",a=,b=,c= ".repeat(90));
        let (_, tries) = prefix.read_counted(&line);
        assert!(tries <= TRIES_MAX + 200, "{tries}");
    }

    #[test]
    fn hosts_with_colons_are_read_before_a_colon() {
        fn host(prefix: &str, line: &str) -> Option<String> {
            read(prefix, line).host.map(Cow::into_owned)
        }
        assert_eq!(
            host("%t:%r:%u@%d:[%p]:", "2026-11-25 07:04:42 UTC:2001:db8::1(4355):app@shop:[7]:LOG:  x").as_deref(),
            Some("2001:db8::1")
        );
        assert_eq!(
            host("%t:%r:%u@%d:[%p]:", "2026-11-25 07:04:42 UTC:[local]:app@shop:[7]:LOG:  x").as_deref(),
            Some("[local]")
        );
        for address in ["2001:db8::1", "::1", "fe80::1%eth0", "10.0.0.1", "db.example.net", "[local]"] {
            let line = format!("2026-11-25 07:04:42 UTC:{address}:app@shop:[7]:LOG:  x");
            assert_eq!(host("%t:%h:%u@%d:[%p]:", &line).as_deref(), Some(address));
        }
    }

    #[test]
    fn numbers_that_no_server_writes_are_no_entry() {
        let prefix = Prefix::parse("%n [%p] %l ").unwrap();
        for line in [
            "99999999999999999 [1] 1 LOG:  x",
            "-1 [1] 1 LOG:  x",
            "1795590282 [99999999999] 1 LOG:  x",
            "1795590282 [1] 99999999999999999999 LOG:  x",
            "1795590282.é [1] 1 LOG:  x",
        ] {
            assert_eq!(prefix.read(line), None, "{line}");
        }
    }
}
