//! Statements out of entries: each with its values, its duration or error, its session and its transaction.

use std::collections::HashMap;
use std::io;

use crate::account::Account;
use crate::call::{Call, Ending, Protocol, SessionFacts};
use crate::entry::Entry;
use crate::file::Writer;
use crate::message::{Said, keyword, said};
use crate::parameters::values;
use crate::password::{has_password, values_have_password};
use crate::time::PLAUSIBLE_US;

/// SQLSTATE of an error whose log does not say it.
const UNKNOWN_STATE: [u8; 5] = *b"?????";
/// Parse and Bind belong to the execution that follows them within this time: twice what a log resolves. A statement that
/// was prepared earlier was not waited for.
const PRELUDE_US_MAX: i64 = 2_000;
/// Entries of several processes are not written in the order of their times.
const BACK_US: i64 = 1_000_000;
/// A session with more lines than this, or that skips more than this, has not existed: a backend would log for a year.
const LINES_MAX: u64 = 1_000_000_000_000;
const LINES_MISSING_MAX: u64 = 1_000_000_000;
/// Ten years: no statement took so long.
const DURATION_US_MAX: u64 = 10 * 366 * 86_400 * 1_000_000;
/// Severities that are not English are counted by their names, so many of them, of so many letters.
const SEVERITIES_COUNTED: usize = 16;
const SEVERITY_LETTERS: usize = 32;
/// Put by RDS in place of the rest of a line.
const TRUNCATED: &str = "[Your log message was truncated]";
/// First words of statements that `log_statement = mod` logs (`GetCommandLogLevel` of PostgreSQL).
const CHANGING: [&str; 12] = [
    "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY", "CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "COMMENT",
];
const SEVERITIES: [&str; 10] =
    ["LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG", "DETAIL", "STATEMENT"];

/// Which session an entry is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Session(String),
    Process(u32),
}

/// Parse and Bind of the next execution.
struct Prelude {
    /// Their text, if the log says it.
    text: Option<String>,
    begin_us: i64,
    end_us: i64,
    us: u64,
}

/// A session that has not ended.
#[derive(Default)]
struct Open {
    /// Its number in the capture, once it has a statement.
    number: Option<usize>,
    facts: SessionFacts,
    pending: Option<Call>,
    prelude: Option<Prelude>,
    /// The next duration is of something that is not in the capture.
    swallow: bool,
    line: Option<u64>,
    transaction: u32,
    local: u64,
    in_block: bool,
}

/// See the module.
pub(crate) struct Assembler {
    open: HashMap<Key, Open>,
    time_us: i64,
    pub account: Account,
    pub writer: Writer,
    /// Where the entry is that is taken: file and line.
    pub place: (String, u64),
}

impl Assembler {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { open: HashMap::new(), time_us: i64::MIN, account: Account::default(), writer, place: Default::default() }
    }

    /// Counts a number that cannot be.
    pub(crate) fn implausible(&mut self, what: &str) {
        implausible(&mut self.account, &self.place, what);
    }

    /// Takes the next entry.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        self.account.entries += 1;
        if entry.time_us < self.time_us.saturating_sub(BACK_US) {
            self.account.time_went_back += 1;
        }
        self.time_us = entry.time_us;
        let known = entry.severity.trim_end_matches(|letter: char| letter.is_ascii_digit());
        if !SEVERITIES.contains(&known) {
            let name: String = entry.severity.chars().take(SEVERITY_LETTERS).collect();
            let counted = &mut self.account.unknown_severities;
            if counted.len() < SEVERITIES_COUNTED || counted.contains_key(&name) {
                *counted.entry(name).or_default() += 1;
            }
        }
        let said = if entry.severity == "LOG" { said(&entry.message) } else { Said::Other };
        let said = self.plausible(said);
        let Some(key) = key(entry) else { return Ok(()) };
        let begins = matches!(said, Said::Received { .. });
        if begins && matches!(key, Key::Process(_)) {
            // The process id was given to another session.
            self.end(&key, false)?;
        }
        let opens = matches!(said, Said::Statement { .. } | Said::Authorized { .. } | Said::Received { .. });
        let fails = entry.statement.is_some();
        if !self.open.contains_key(&key) {
            if !opens && !fails && !matches!(said, Said::Prelude { .. }) {
                self.account.lone_durations += u64::from(matches!(said, Said::Duration { .. }));
                return Ok(());
            }
            self.account.begun_before += u64::from(entry.line.is_some_and(|line| line > 1));
            let seen = entry.line == Some(1) || matches!(said, Said::Authorized { .. } | Said::Received { .. });
            self.open.insert(key.clone(), Open::begin(entry, seen));
        }
        let open = self.open.get_mut(&key).expect("it is there");
        if !open.follow(entry, &mut self.account, &self.place) {
            return Ok(());
        }
        if said == Said::Disconnected {
            return self.end(&key, true);
        }
        open.take(entry, said, &mut self.account, &mut self.writer)
    }

    /// The same without a duration that cannot be: of a statement that it ends it leaves no ending.
    fn plausible<'a>(&mut self, said: Said<'a>) -> Said<'a> {
        let us = match said {
            Said::Statement { us, .. } => us.unwrap_or(0),
            Said::Prelude { us, .. } | Said::Duration { us } => us,
            _ => 0,
        };
        if us <= DURATION_US_MAX {
            return said;
        }
        self.implausible("duration");
        match said {
            Said::Statement { protocol, name, text, .. } => Said::Statement { protocol, name, text, us: None },
            _ => Said::Other,
        }
    }

    /// Ends what is still open, and returns what was counted with the writer.
    pub(crate) fn finish(mut self) -> io::Result<(Account, Writer)> {
        let keys: Vec<Key> = self.open.keys().cloned().collect();
        for key in keys {
            self.end(&key, false)?;
        }
        Ok((self.account, self.writer))
    }

    fn end(&mut self, key: &Key, said: bool) -> io::Result<()> {
        let Some(mut open) = self.open.remove(key) else { return Ok(()) };
        open.write_pending(&mut self.account, &mut self.writer)?;
        open.facts.ended = said;
        let Some(number) = open.number else {
            self.account.idle += 1;
            return Ok(());
        };
        self.account.not_ended += u64::from(!said);
        self.writer.end(number, open.facts)
    }
}

fn implausible(account: &mut Account, (file, line): &(String, u64), what: &str) {
    account.implausible += 1;
    account.first_implausible.get_or_insert_with(|| (file.clone(), *line, what.to_owned()));
}

fn key(entry: &Entry<'_>) -> Option<Key> {
    entry.session.as_ref().map(|session| Key::Session(session.to_string())).or_else(|| entry.pid.map(Key::Process))
}

impl Open {
    /// `seen` is whether this is its first line. Its time is more exact than the session's beginning, which has seconds.
    fn begin(entry: &Entry<'_>, seen: bool) -> Self {
        let said_us = entry.session_begin_us.filter(|us| !seen && PLAUSIBLE_US.contains(us));
        let begin_us = said_us.unwrap_or(entry.time_us).min(entry.time_us);
        Self { facts: SessionFacts { begin_us, ..SessionFacts::default() }, ..Self::default() }
    }

    /// Notes whose it is, and that its lines follow each other. False if the line was read before.
    fn follow(&mut self, entry: &Entry<'_>, account: &mut Account, place: &(String, u64)) -> bool {
        let limit = self.line.map_or(LINES_MAX, |last| last + LINES_MISSING_MAX);
        if entry.line.is_some_and(|line| line > limit) {
            // The others are compared with each other.
            implausible(account, place, "line");
        } else if let Some(line) = entry.line {
            if let Some(last) = self.line {
                if line <= last {
                    account.repeated += 1;
                    return false;
                }
                account.missing += line - last - 1;
            }
            self.line = Some(line + entry.additions);
        }
        let facts = &mut self.facts;
        facts.end_us = facts.end_us.max(entry.time_us);
        for (known, said) in [
            (&mut facts.user, &entry.user),
            (&mut facts.database, &entry.database),
            (&mut facts.host, &entry.host),
            (&mut facts.application, &entry.application),
        ] {
            if let Some(said) = said
                && known != said
            {
                said.as_ref().clone_into(known);
            }
        }
        true
    }

    fn take(
        &mut self,
        entry: &Entry<'_>,
        said: Said<'_>,
        account: &mut Account,
        writer: &mut Writer,
    ) -> io::Result<()> {
        match said {
            Said::Statement { protocol, name, text, us } => {
                self.write_pending(account, writer)?;
                let prelude = self.prelude.take();
                self.swallow = false;
                if has_password(text) {
                    account.passwords += 1;
                    self.swallow = us.is_none();
                    return Ok(());
                }
                let mut call = self.call(entry, protocol, name, text);
                call.due_us -= us.map_or(0, |us| i64::try_from(us).unwrap_or(0));
                let before_us = join(&mut call, prelude);
                match us {
                    Some(us) => {
                        account.least_us = Some(account.least_us.map_or(us, |least| least.min(us)));
                        call.ending = Ending::Done(us + before_us);
                        self.write(&call, account, writer)?;
                    }
                    None => {
                        call.ending = Ending::Done(before_us);
                        self.pending = Some(call);
                    }
                }
            }
            Said::Prelude { text, us } => self.prelude(Some(text), entry.time_us, us),
            Said::Duration { us } => match self.pending.take() {
                Some(mut call) => {
                    let Ending::Done(before_us) = call.ending else { unreachable!("a pending call has begun") };
                    call.ending = Ending::Done(us + before_us);
                    self.write(&call, account, writer)?;
                }
                None if self.swallow => self.swallow = false,
                None => self.prelude(None, entry.time_us, us),
            },
            Said::Fetch => {
                self.write_pending(account, writer)?;
                account.fetches += 1;
                self.swallow = true;
            }
            Said::Authorized { user, database, application } => {
                for (known, said) in [
                    (&mut self.facts.user, user),
                    (&mut self.facts.database, database),
                    (&mut self.facts.application, application),
                ] {
                    if !said.is_empty() {
                        said.clone_into(known);
                    }
                }
            }
            Said::Received { host } => host.clone_into(&mut self.facts.host),
            Said::Disconnected | Said::Other => {
                if matches!(entry.severity.as_ref(), "ERROR" | "FATAL" | "PANIC") {
                    self.fail(entry, account, writer)?;
                }
            }
        }
        Ok(())
    }

    /// Parse or Bind; several of one execution add up.
    fn prelude(&mut self, text: Option<&str>, end_us: i64, us: u64) {
        let begin_us = end_us - i64::try_from(us).unwrap_or(0);
        let same = |before: &Prelude| before.text.as_deref() == text && begin_us - before.end_us <= PRELUDE_US_MAX;
        self.prelude = Some(match self.prelude.take().filter(same) {
            Some(before) => Prelude { end_us, us: before.us.saturating_add(us).min(DURATION_US_MAX), ..before },
            None => Prelude { text: text.map(str::to_owned), begin_us, end_us, us },
        });
    }

    /// An error: of the statement that was begun, or of one that failed before it was logged.
    fn fail(&mut self, entry: &Entry<'_>, account: &mut Account, writer: &mut Writer) -> io::Result<()> {
        let state = entry.sqlstate.as_deref().and_then(|state| state.as_bytes().try_into().ok());
        let ending = Ending::Failed(state.unwrap_or(UNKNOWN_STATE));
        let early = matches!(entry.tag.as_deref(), Some("PARSE" | "BIND"));
        let same = |call: &Call| entry.statement.as_deref().is_none_or(|text| text == call.text);
        self.prelude = None;
        if !early && self.pending.as_ref().is_some_and(same) {
            let mut call = self.pending.take().expect("there is one");
            call.ending = ending;
            return self.write(&call, account, writer);
        }
        self.write_pending(account, writer)?;
        let Some(text) = entry.statement.as_deref() else {
            // What ends a session, as a log-in that is refused, is about no statement.
            account.errors_without_statement += u64::from(entry.severity == "ERROR");
            return Ok(());
        };
        if has_password(text) {
            account.passwords += 1;
            return Ok(());
        }
        let extended = early || takes_parameters(text);
        let protocol = if extended { Protocol::Unnamed } else { Protocol::Text };
        let mut call = self.call(entry, protocol, "", text);
        call.ending = ending;
        self.write(&call, account, writer)
    }

    fn call(&mut self, entry: &Entry<'_>, protocol: Protocol, name: &str, text: &str) -> Call {
        let listed = entry.detail.as_deref().and_then(listed).or_else(|| {
            // `log_parameter_max_length_on_error`: unnamed portal with parameters: $1 = …
            entry.context.as_deref().and_then(|context| listed(context.lines().next()?.split_once(" with ")?.1))
        });
        let found = listed.and_then(values);
        let truncated = entry.message.contains(TRUNCATED);
        let cut = truncated || found.as_ref().is_some_and(|found| found.cut > 0);
        let without_values = protocol != Protocol::Text && found.is_none() && takes_parameters(text);
        let values = found.map(|found| found.values).unwrap_or_default();
        let local = entry.transaction.unwrap_or(0);
        let word = keyword(text);
        let same = if local != 0 && self.local != 0 { local == self.local } else { self.in_block };
        if !same || self.transaction == 0 {
            self.transaction += 1;
        }
        self.local = local;
        self.in_block = match word.as_str() {
            "BEGIN" | "START" => true,
            "COMMIT" | "END" | "ABORT" => false,
            "ROLLBACK" => self.in_block && goes_on(text),
            "PREPARE" => self.in_block && !text.to_ascii_uppercase().contains("TRANSACTION"),
            _ => self.in_block,
        };
        Call {
            due_us: entry.time_us,
            protocol,
            name: name.to_owned(),
            text: text.to_owned(),
            values: values.into_iter().map(|value| value.map(std::borrow::Cow::into_owned)).collect(),
            transaction: self.transaction,
            ending: Ending::Unknown,
            without_values,
            cut,
            rows: None,
            answer: Vec::new(),
        }
    }

    /// Writes the call that no duration came for.
    fn write_pending(&mut self, account: &mut Account, writer: &mut Writer) -> io::Result<()> {
        let Some(mut call) = self.pending.take() else { return Ok(()) };
        call.ending = Ending::Unknown;
        self.write(&call, account, writer)
    }

    fn write(&mut self, call: &Call, account: &mut Account, writer: &mut Writer) -> io::Result<()> {
        if values_have_password(&call.text, call.values.iter().flatten().map(String::as_str)) {
            account.passwords += 1;
            return Ok(());
        }
        let first = account.calls == 0;
        account.first_us = if first { call.due_us } else { account.first_us.min(call.due_us) };
        account.last_us = if first { call.due_us } else { account.last_us.max(call.due_us) };
        account.calls += 1;
        account.without_ending += u64::from(call.ending == Ending::Unknown);
        account.without_values += u64::from(call.without_values);
        account.cut += u64::from(call.cut);
        account.changing += u64::from(CHANGING.contains(&keyword(&call.text).as_str()));
        self.facts.calls += 1;
        let number = *self.number.get_or_insert_with(|| writer.begin(&self.facts));
        writer.call(number, call)
    }
}

/// The list of values in a DETAIL: `parameters: $1 = …`, from PostgreSQL 16 on `Parameters: …`.
fn listed(detail: &str) -> Option<&str> {
    detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))
}

/// Whether a savepoint is rolled back and not the transaction.
fn goes_on(text: &str) -> bool {
    text.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("to"))
}

/// Whether a text has a parameter.
pub fn takes_parameters(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_digit())
}

/// Lets a call begin with its Parse and Bind. Returns how long they took.
fn join(call: &mut Call, prelude: Option<Prelude>) -> u64 {
    let Some(prelude) = prelude.filter(|_| call.protocol != Protocol::Text) else { return 0 };
    let same = prelude.text.as_ref().is_none_or(|text| *text == call.text);
    if !same || call.due_us - prelude.end_us > PRELUDE_US_MAX {
        return 0;
    }
    call.due_us = call.due_us.min(prelude.begin_us);
    prelude.us
}
