//! What was read of logs, and what of them cannot be used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// In place of a format: a relay recorded it.
pub const RELAYED: &str = "relayed";

/// What the name of a zone was taken for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneTaken {
    /// Seconds ahead of UTC.
    pub offset_s: i64,
    /// By what it was told: `given`, `received` (a time in UTC around the entries), `session` (when it began, in `%c`), `season` (the other
    /// name of the year there), or `nothing`: then it counts as UTC, and times may be wrong by hours.
    pub by: String,
}

/// Counts of a reading. It says of each statement and each line that is not in the capture why it is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Files by name, with their format.
    pub files: Vec<(String, String)>,
    /// Bytes, uncompressed.
    pub bytes: u64,
    /// Entries of the log.
    pub entries: u64,
    /// Whether times have fractions of seconds. Those within a second are spread in order otherwise.
    pub fractions: bool,
    /// The recording was killed: what came in its last seconds is not in the capture.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Sessions of a recording that were not followed to their end, by the reason. What came before is in the capture.
    pub not_followed_sessions: BTreeMap<String, u64>,
    /// When the first statement arrived, and the last, in microseconds since 1970 by the log's clock.
    pub first_us: i64,
    /// See `first_us`.
    pub last_us: i64,
    /// Statements in the capture.
    pub calls: u64,
    /// Of these, those that have no duration and no error.
    pub without_ending: u64,
    /// Of these, those whose values are not in the log.
    pub without_values: u64,
    /// Of these, those whose text or values are cut, or end as a cut value does.
    pub cut: u64,
    /// Later rows of an execution that a client took in parts; the execution is in the capture.
    pub fetches: u64,
    /// Statements with values in binary of types whose form is not known here. They are without values.
    pub binary: u64,
    /// Bytes of rows of COPY FROM STDIN in the capture.
    pub copied_bytes: u64,
    /// Executions that a relay cannot follow: of the fast path, and of what SQL's PREPARE made. They are not in the capture.
    pub not_followed: u64,
    /// Statements that set or name a password. They are not in the capture.
    pub passwords: u64,
    /// Errors without the statement that they are about. They are not in the capture. One that ends its session is about none.
    pub errors_without_statement: u64,
    /// Records that are not whole. They are not in the capture.
    pub torn: u64,
    /// Records that are longer than 64 MiB. They are not in the capture.
    pub too_long: u64,
    /// Numbers that cannot be: of a line, a duration, a time. What else their records say is in the capture.
    pub implausible: u64,
    /// Where the first of them is: file, line, and what it is a number of.
    pub first_implausible: Option<(String, u64, String)>,
    /// Records that are not text in UTF-8. They are not in the capture.
    pub not_text: u64,
    /// Lines among them: a statement that one of them is of counts as cut.
    pub lines_not_text: u64,
    /// Lines of other programs.
    pub foreign: u64,
    /// Lines that are missing by their numbers.
    pub missing: u64,
    /// Lines whose numbers were read before, with something else in them. They are not in the capture.
    pub repeated: u64,
    /// Entries that the logs have twice, alike. They are in the capture once.
    pub duplicates: u64,
    /// Statements of entries of which a line could not be used, so that it is not known how they go on. They are not in the capture.
    pub cut_entries: u64,
    /// Messages about statements in other languages than English, by `lc_messages`. What they say is not in the capture.
    pub other_languages: BTreeMap<String, u64>,
    /// Entries that have a DETAIL. None has where `log_error_verbosity` is `terse`.
    pub details: u64,
    /// The logs had another order than that of their times, in which they were read.
    pub sorted: bool,
    /// Names of zones that are of several places, or of none that is known, with what they were taken for and why.
    pub zones: BTreeMap<String, ZoneTaken>,
    /// Sessions that began before the log.
    pub begun_before: u64,
    /// Sessions whose end is not in the log.
    pub not_ended: u64,
    /// Sessions without a statement. They are not in the capture.
    pub idle: u64,
    /// How often the time went back by more than a second, as when daylight saving ends.
    pub time_went_back: u64,
    /// How often no entry was written for more than half an hour, as when a part of the log is missing or the clock was set ahead.
    pub time_went_ahead: u64,
    /// The longest time without an entry.
    pub longest_gap_us: u64,
    /// Durations without a statement: of `log_duration`, where statements are not logged.
    pub lone_durations: u64,
    /// Statements that only change rows or definitions, as `log_statement = mod` logs them.
    pub changing: u64,
    /// The shortest duration of a statement that was logged by its duration.
    pub least_us: Option<u64>,
    /// Entries by severity, where it is none of English.
    pub unknown_severities: BTreeMap<String, u64>,
    /// Where the first record is that cannot be read: file and line.
    pub first_unreadable: Option<(String, u64)>,
}

/// What is not in a capture although its log, or its clients, had it. Keys are the names of the [counters](Account).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Statements that are in the capture.
    pub kept: u64,
    /// Statements that are not, and records that may have had one, by the reason.
    pub statements: BTreeMap<String, u64>,
    /// Lines of which it is not known what they had, or that are of other programs, by the reason.
    pub lines: BTreeMap<String, u64>,
    /// All sessions of the capture.
    pub sessions: u64,
    /// Of these, those that were not recorded to their end, by the reason. How many statements they lack is not known.
    pub incomplete: BTreeMap<String, u64>,
    /// The recording was killed: what came in its last seconds is not in the capture.
    pub unfinished: bool,
}

impl Account {
    /// The address of the server that a recording is of; empty of a log, which does not say it.
    pub fn recorded_at(&self) -> &str {
        self.files.iter().find(|(_, form)| form == RELAYED).map_or("", |(address, _)| address)
    }

    /// Everything that the reading left out, in one place: an account of a replay has it, and its verdict is by it. A counter of something that
    /// is lost belongs here. Statements that are in the capture and cannot be sent (`cut`, `without_values`) are counted by the replay.
    pub fn left_out(&self, sessions: usize) -> LeftOut {
        let counted = |counters: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let lost = counters.iter().filter(|(_, count)| *count > 0);
            lost.map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
        };
        let total =
            |counts: &BTreeMap<String, u64>| counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        LeftOut {
            kept: self.calls,
            statements: counted(&[
                ("passwords", self.passwords),
                ("repeated", self.repeated),
                ("torn", self.torn),
                ("cut_entries", self.cut_entries),
                ("other_languages", total(&self.other_languages)),
                ("not_text", self.not_text.saturating_sub(self.lines_not_text)),
                ("too_long", self.too_long),
                ("unknown_severities", total(&self.unknown_severities)),
                ("errors_without_statement", self.errors_without_statement),
                ("not_followed", self.not_followed),
            ]),
            lines: counted(&[
                ("missing", self.missing),
                // A session that began before the log may have its first duration there and not the statement.
                ("lone_durations", self.lone_durations),
                ("implausible", self.implausible),
                ("foreign", self.foreign),
            ]),
            sessions: sessions as u64,
            incomplete: self.not_followed_sessions.clone(),
            unfinished: self.unfinished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reading_left_out_is_summed_by_its_reasons() {
        let account = Account {
            calls: 16,
            passwords: 84,
            repeated: 3,
            missing: 2,
            foreign: 7,
            lone_durations: 5,
            unknown_severities: BTreeMap::from([("FEHLER".to_owned(), 2), ("HINWEIS".to_owned(), 1)]),
            not_followed_sessions: BTreeMap::from([("memory".to_owned(), 1)]),
            unfinished: true,
            ..Account::default()
        };
        let found = account.left_out(9);
        let of = |counted: &BTreeMap<String, u64>| {
            counted.iter().map(|(reason, count)| format!("{reason} {count}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(of(&found.statements), "passwords 84, repeated 3, unknown_severities 3");
        assert_eq!(of(&found.lines), "foreign 7, lone_durations 5, missing 2");
        assert_eq!(of(&found.incomplete), "memory 1");
        assert!(found.unfinished && (found.kept, found.sessions) == (16, 9));
    }

    #[test]
    fn statements_that_are_in_the_capture_are_not_left_out() {
        let kept = Account { calls: 5, cut: 1, without_values: 2, fetches: 3, ..Account::default() };
        assert_eq!(kept.left_out(1), LeftOut { kept: 5, sessions: 1, ..LeftOut::default() });
        // A line that is not text is not a statement of its own beside the entry that it cuts; a record of a csvlog is.
        let cut = Account { cut_entries: 3, not_text: 4, lines_not_text: 3, ..Account::default() };
        assert_eq!(
            cut.left_out(0).statements,
            BTreeMap::from([("cut_entries".to_owned(), 3), ("not_text".to_owned(), 1)])
        );
        let endless = BTreeMap::from([("A".to_owned(), u64::MAX), ("B".to_owned(), 1)]);
        let account = Account { unknown_severities: endless, ..Account::default() };
        assert_eq!(account.left_out(0).statements["unknown_severities"], u64::MAX);
    }
}
