//! Statements out of entries: each with its values, its duration or error, its session and its transaction.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use crate::account::Account;
use crate::call::{Call, Ending, Protocol, SessionFacts};
use crate::entry::Entry;
use crate::file::Writer;
use crate::language;
use crate::message::{Said, keyword, said};
use crate::parameters::values;
use crate::password::{has_password, values_have_password};
use crate::time::PLAUSIBLE_US;
use crate::transaction::effect;

/// SQLSTATE of an error whose log does not say it.
const UNKNOWN_STATE: [u8; 5] = *b"?????";
/// Parse and Bind belong to the execution that follows them within this time: twice what a log resolves. A statement that
/// was prepared earlier was not waited for.
const PRELUDE_US_MAX: i64 = 2_000;
/// Entries of several processes are not written in the order of their times.
const BACK_US: i64 = 1_000_000;
/// Nothing was written for so long, or the clock was set: daylight saving moves it by no less, and checkpoints are logged more often.
const AHEAD_US: i64 = 30 * 60 * 1_000_000;
/// A session with more lines than this, or that skips more than this, has not existed: a backend would log for a year.
const LINES_MAX: u64 = 1_000_000_000_000;
const LINES_MISSING_MAX: u64 = 1_000_000_000;
/// A line further ahead than this is believed when the next line of its session follows it.
const LINES_AHEAD_MAX: u64 = 10_000;
/// Ten years: no statement took so long.
const DURATION_US_MAX: u64 = 10 * 366 * 86_400 * 1_000_000;
/// Severities that are not English are counted by their names, so many of them, of so many letters.
const SEVERITIES_COUNTED: usize = 16;
const SEVERITY_LETTERS: usize = 32;
/// So many entries that are before one that they follow are no accident: the log is in another order than that of its times.
pub(crate) const DISORDER_SURE: u64 = 3;
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
    /// A line that is far ahead of the one before, which the next one confirms.
    ahead: Option<u64>,
    /// What was read last, and of which file: time, digest.
    last: Option<(i64, u64, usize)>,
    /// When the server's process began, if the log says it, and the client's port.
    begin_us: Option<i64>,
    port: Option<u16>,
    /// Clocks were not set back meanwhile.
    epoch: u64,
    transaction: u32,
    local: u64,
    in_block: bool,
    /// The next call is of another transaction, whatever its block.
    is_another: bool,
    /// The last text opens a block, which stays if it fails.
    opened: bool,
}

/// How a log is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// As it comes. It is noted when that is not the order of times.
    Streamed,
    /// In the order of times, of several files that overlap if `merged`.
    Sorted { merged: bool },
}

/// What an entry is beside those before it.
enum Follows {
    /// The next one.
    Next,
    /// It was read before.
    Again,
    /// It is of a session that has the process id of one before.
    NewSession,
}

/// See the module.
pub(crate) struct Assembler {
    open: HashMap<Key, Open>,
    time_us: i64,
    pub account: Account,
    pub writer: Writer,
    /// Where the entry is that is taken: file and line.
    pub place: (String, u64),
    /// Which of the files it is of.
    pub file: usize,
    taking: Taking,
    /// How often an entry was before one that it follows, and how often the clock was set back, by which times are compared.
    pub disorder: u64,
    epoch: u64,
    /// Two files have different lines of one session under one number.
    pub conflict: Option<String>,
}

impl Assembler {
    pub(crate) fn new(writer: Writer, taking: Taking) -> Self {
        Self {
            open: HashMap::new(),
            time_us: i64::MIN,
            account: Account::default(),
            writer,
            place: Default::default(),
            file: 0,
            taking,
            disorder: 0,
            epoch: 0,
            conflict: None,
        }
    }

    /// The same taking entries in another way from now on.
    pub(crate) fn taking(&mut self, taking: Taking) {
        self.taking = taking;
    }

    /// The time of the last entry.
    pub(crate) fn time_us(&self) -> i64 {
        self.time_us
    }

    /// Counts a number that cannot be.
    pub(crate) fn implausible(&mut self, what: &str) {
        implausible(&mut self.account, &self.place, what);
    }

    /// Takes the next entry.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        self.account.entries += 1;
        self.clock(entry.time_us);
        let known = entry.severity.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let is_known = SEVERITIES.contains(&known);
        if !is_known {
            let name: String = entry.severity.chars().take(SEVERITY_LETTERS).collect();
            let counted = &mut self.account.unknown_severities;
            if counted.len() < SEVERITIES_COUNTED || counted.contains_key(&name) {
                *counted.entry(name).or_default() += 1;
            }
        }
        self.account.details += u64::from(entry.detail.is_some());
        let said = if entry.severity == "LOG" { said(&entry.message) } else { Said::Other };
        if said == Said::Other
            && (entry.severity == "LOG" || !is_known)
            && let Some(language) = language::of(&entry.message)
        {
            *self.account.other_languages.entry(language.to_owned()).or_default() += 1;
        }
        let said = self.plausible(said);
        let Some(key) = key(entry) else { return Ok(()) };
        let is_process = matches!(key, Key::Process(_));
        if is_process && matches!(said, Said::Received { .. }) {
            // The process id was given to another session.
            self.end(&key, false)?;
        }
        if let Some(open) = self.open.get_mut(&key) {
            match open.place(entry, is_process, self.file, self.epoch) {
                Follows::Next => (),
                Follows::NewSession => self.end(&key, false)?,
                Follows::Again => {
                    let is_same = open.is_same(entry);
                    let is_of_another = open.last.is_some_and(|(_, _, file)| file != self.file);
                    self.again(entry, is_same, is_of_another);
                    return Ok(());
                }
            }
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
        let is_early = self.taking == Taking::Streamed
            && entry.line.is_none()
            && open.epoch == self.epoch
            && open.last.is_some_and(|(time_us, _, _)| entry.time_us < time_us.saturating_sub(BACK_US));
        self.disorder += u64::from(is_early);
        if open.follow(entry, &mut self.account, &self.place) {
            // A line between is gone: what is open may have been over, and the next duration may be its.
            open.write_pending(&mut self.account, &mut self.writer)?;
            (open.prelude, open.swallow) = (None, false);
        }
        open.last = Some((entry.time_us, glance(entry), self.file));
        open.epoch = self.epoch;
        if said == Said::Disconnected {
            return self.end(&key, true);
        }
        open.take(entry, said, &mut self.account, &mut self.writer)
    }

    /// Counts an entry whose number was read before.
    fn again(&mut self, entry: &Entry<'_>, is_same: bool, is_of_another: bool) {
        if self.taking == Taking::Streamed {
            self.disorder += DISORDER_SURE;
        }
        if is_same {
            self.account.duplicates += 1;
        } else {
            self.account.repeated += 1;
            if is_of_another && self.taking == (Taking::Sorted { merged: true }) {
                let session = entry.session.as_deref().map(str::to_owned);
                self.conflict = self.conflict.take().or(session).or_else(|| entry.pid.map(|pid| pid.to_string()));
            }
        }
    }

    /// Follows the clock from entry to entry.
    fn clock(&mut self, time_us: i64) {
        if self.time_us != i64::MIN {
            if time_us < self.time_us.saturating_sub(BACK_US) {
                self.account.time_went_back += 1;
                self.disorder += 1;
                self.epoch += 1;
            } else if time_us > self.time_us.saturating_add(AHEAD_US) {
                self.account.time_went_ahead += 1;
            }
            let gap_us = time_us.saturating_sub(self.time_us);
            self.account.longest_gap_us = self.account.longest_gap_us.max(u64::try_from(gap_us).unwrap_or(0));
        }
        self.time_us = time_us;
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

    /// What an entry is beside those of its session before it. A process id is given again: to a client with another port, role or database,
    /// or to one whose lines begin again.
    fn place(&self, entry: &Entry<'_>, is_process: bool, file: usize, epoch: u64) -> Follows {
        let facts = &self.facts;
        let is_other = |known: &str, found: &Option<std::borrow::Cow<'_, str>>| {
            !known.is_empty() && found.as_ref().is_some_and(|found| *found != known)
        };
        let begins = matches!((self.begin_us, entry.session_begin_us), (Some(known), Some(found)) if known != found);
        let port = matches!((self.port, entry.port), (Some(known), Some(found)) if known != found);
        if is_process
            && (begins || port || is_other(&facts.user, &entry.user) || is_other(&facts.database, &entry.database))
        {
            return Follows::NewSession;
        }
        let (Some(line), Some(last)) = (entry.line, self.line) else { return Follows::Next };
        if line > last {
            return Follows::Next;
        }
        let is_later =
            self.last.is_some_and(|(time_us, _, of)| entry.time_us > time_us || of != file && epoch != self.epoch);
        if is_process && is_later { Follows::NewSession } else { Follows::Again }
    }

    /// Whether an entry is the last one again.
    fn is_same(&self, entry: &Entry<'_>) -> bool {
        self.last.is_some_and(|(time_us, known, _)| time_us == entry.time_us && known == glance(entry))
    }

    /// Notes whose it is. Whether lines are missing before it.
    fn follow(&mut self, entry: &Entry<'_>, account: &mut Account, place: &(String, u64)) -> bool {
        let missing = self.number(entry, account, place);
        account.missing += missing;
        if entry.session_begin_us.is_some() {
            self.begin_us = entry.session_begin_us;
        }
        self.port = entry.port.or(self.port);
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
        missing > 0
    }

    /// Follows the numbers of lines. Returns how many are missing before this one.
    fn number(&mut self, entry: &Entry<'_>, account: &mut Account, place: &(String, u64)) -> u64 {
        let Some(line) = entry.line else { return 0 };
        let limit = self.line.map_or(LINES_MAX, |last| last.saturating_add(LINES_MISSING_MAX));
        if line > limit {
            // The others are compared with each other.
            implausible(account, place, "line");
            return 0;
        }
        let ahead = self.ahead.take();
        let missing = match (self.line, ahead) {
            (None, _) => 0,
            // The one before was far ahead, and this one is behind it: that one was none.
            (Some(last), Some(ahead)) if line <= ahead => {
                implausible(account, place, "line");
                line - last - 1
            }
            (Some(last), Some(ahead)) => (ahead - last - 1) + (line - ahead - 1),
            (Some(last), None) if line - last > LINES_AHEAD_MAX => {
                self.ahead = Some(line);
                return 0;
            }
            (Some(last), None) => line - last - 1,
        };
        self.line = Some(line.saturating_add(entry.additions));
        missing
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
                if entry.cut || is_truncated(&entry.message) {
                    account.cut_entries += 1;
                    self.swallow = us.is_none();
                    self.divide(entry.transaction.unwrap_or(0), text);
                    return Ok(());
                }
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
        if !early && self.pending.as_ref().is_some_and(|call| entry.cut || same(call)) {
            let mut call = self.pending.take().expect("there is one");
            call.ending = ending;
            self.in_block |= self.opened;
            return self.write(&call, account, writer);
        }
        self.write_pending(account, writer)?;
        if entry.cut {
            account.cut_entries += 1;
            return Ok(());
        }
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
        let cut = found.as_ref().is_some_and(|found| found.cut > 0);
        let without_values = protocol != Protocol::Text && found.is_none() && takes_parameters(text);
        let values = found.map(|found| found.values).unwrap_or_default();
        self.divide(entry.transaction.unwrap_or(0), text);
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

    /// Tells the transaction of a text from the one before, and what is open behind it. `local` is its number by the log, or 0.
    fn divide(&mut self, local: u64, text: &str) {
        let effect = effect(text, self.in_block);
        let same = if self.is_another {
            false
        } else if self.in_block && effect.ends {
            // What ends a block is of it, though the log may say the number of the next one.
            true
        } else if local != 0 && self.local != 0 {
            local == self.local
        } else {
            self.in_block
        };
        if !same || self.transaction == 0 {
            self.transaction += 1;
        }
        (self.local, self.is_another, self.opened) = (local, effect.is_another, effect.opens);
        self.in_block = effect.open.unwrap_or(self.in_block);
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

/// Whether RDS has put a mark in place of the rest of a message.
fn is_truncated(message: &str) -> bool {
    message.contains(TRUNCATED)
}

/// What tells an entry from others that a session may have under its number: its lengths, and how it begins and ends. It is asked for each entry.
pub(crate) fn glance(entry: &Entry<'_>) -> u64 {
    let message = entry.message.as_bytes();
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let end = message.len();
    let words = [
        end as u64,
        u64::from(entry.pid.unwrap_or(0)),
        entry.detail.as_ref().map_or(0, |text| text.len() as u64),
        message.get(10..18).map_or(0, word),
        message.get(end.saturating_sub(8)..).map_or(0, word),
        message.get(end / 2..end / 2 + 8).map_or(0, word),
    ];
    words.iter().fold(0, |mixed: u64, word| (mixed.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What tells an entry from others of its time.
pub(crate) fn digest(entry: &Entry<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (entry.pid, &entry.session, entry.line, &entry.severity, &entry.message).hash(&mut hasher);
    (&entry.detail, &entry.statement).hash(&mut hasher);
    hasher.finish()
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
