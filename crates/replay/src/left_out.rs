//! Statements that are not sent, and why.
//!
//! The words are there to say at once what a replay is not for. They keep nobody inside the database, as text can be put together by the
//! server: that is the business of the roles that send, which the command looks at before the first statement.

use pgdyno_capture::{Call, Ending, readings};

/// Functions and commands that end a server or leave it: other sessions, files, other servers.
const REACHING_OUT: [&str; 20] = [
    "PG_TERMINATE_BACKEND",
    "PG_CANCEL_BACKEND",
    "PG_RELOAD_CONF",
    "PG_ROTATE_LOGFILE",
    "PG_PROMOTE",
    "PG_SWITCH_WAL",
    "PG_READ_FILE",
    "PG_READ_BINARY_FILE",
    "PG_LS_DIR",
    "DBLINK",
    "LO_IMPORT",
    "LO_EXPORT",
    "PG_NOTIFY",
    "SUBSCRIPTION",
    "PUBLICATION",
    "TABLESPACE",
    "FOREIGN",
    "PROGRAM",
    "PG_CREATE_PHYSICAL_REPLICATION_SLOT",
    "PG_CREATE_LOGICAL_REPLICATION_SLOT",
];
/// Letters of the shortest of them: each statement is looked at, and most words are shorter.
const SHORTEST: usize = 6;
/// Functions of that extension begin with it.
const DBLINK: &str = "DBLINK_";
const CHANGING_THE_SERVER: [&str; 6] = ["DATABASE", "SYSTEM", "ROLE", "USER", "GROUP", "SERVER"];

/// Instants and durations of a capture are within this of 1970, in microseconds: 36,500 years, of which eight can be added.
const TIME_US_MAX: i64 = 1 << 60;
/// The protocol counts parameters in 16 bits, and no message of PostgreSQL's is longer.
const VALUES_MAX: usize = u16::MAX as usize;
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Whether the texts of a capture's table were looked at and are sent, by their numbers: the same ones come again and again.
#[derive(Default)]
pub(crate) struct Sent(Vec<bool>);

impl Sent {
    /// Why a call is not sent, whose `text` has this number in the table; none if it is.
    pub(crate) fn why(&mut self, call: &Call, text: Option<usize>) -> Option<&'static str> {
        let is_whole = !call.without_values && !call.cut;
        if is_whole && impossible(call).is_none() && text.is_some_and(|text| self.0.get(text) == Some(&true)) {
            return None;
        }
        let found = why(call);
        // Of a COPY it is not the text alone that decides.
        let is_copy = || words(&call.text).any(|word| word.eq_ignore_ascii_case("COPY"));
        if let Some(text) = text.filter(|_| found.is_none() && !is_copy()) {
            self.0.resize(self.0.len().max(text + 1), false);
            self.0[text] = true;
        }
        found
    }
}

/// Why a call is not sent; none if it is.
pub(crate) fn why(call: &Call) -> Option<&'static str> {
    if call.without_values {
        return Some("its values are not in the log");
    }
    if call.cut {
        return Some("its text or values are cut");
    }
    if let Some(why) = impossible(call) {
        return Some(why);
    }
    // Without literals and comments; a text may have several statements.
    let has_rows = call.rows.is_some();
    let why_of_each = |shape: &String| shape.split(';').find_map(|statement| why_of(statement, has_rows));
    if let Some(why) = readings(&call.text).iter().find_map(why_of_each) {
        return Some(why);
    }
    let leaves = |word: &str| word.len() >= SHORTEST && (is_one_of(word, &REACHING_OUT) || is_dblink(word));
    words(&call.text).any(leaves).then_some("it leaves the server, or ends what others do")
}

/// Why a call cannot be sent at all: a capture is a file that somebody may have written by hand.
fn impossible(call: &Call) -> Option<&'static str> {
    let is_time = |us: i64| (-TIME_US_MAX..=TIME_US_MAX).contains(&us);
    let took_us = if let Ending::Done(us) = call.ending { i64::try_from(us).unwrap_or(i64::MAX) } else { 0 };
    if !is_time(call.due_us) || !is_time(took_us) {
        return Some("its time cannot be");
    }
    if call.values.len() > VALUES_MAX {
        return Some("it has more parameters than a statement can have");
    }
    let values = || call.values.iter().flatten();
    if call.text.len() + values().map(String::len).sum::<usize>() > MESSAGE_BYTES_MAX {
        return Some("it is longer than a message can be");
    }
    let has_zero = |text: &str| text.as_bytes().contains(&0);
    (has_zero(&call.text) || has_zero(&call.name) || values().any(|value| has_zero(value)))
        .then_some("it has a zero byte, which no text of PostgreSQL has")
}

/// Why one statement is not sent, by its shape. `has_rows` says whether rows for COPY are in the capture.
fn why_of(statement: &str, has_rows: bool) -> Option<&'static str> {
    let first = words(statement).next()?;
    let begins_with = |any: &[&str]| is_one_of(first, any);
    if begins_with(&["COPY"]) {
        let outer = outside_of_brackets(statement);
        let mut rest = words(&outer).skip_while(|word| !is_one_of(word, &["FROM", "TO"]));
        let from = rest.next().is_some_and(|word| word.eq_ignore_ascii_case("FROM"));
        return match rest.next() {
            Some(word) if from && word.eq_ignore_ascii_case("STDIN") => {
                (!has_rows).then_some("rows of COPY are in no log")
            }
            Some(word) if !from && word.eq_ignore_ascii_case("STDOUT") => None,
            _ => Some("it reads or writes files of the server"),
        };
    }
    if begins_with(&["NOTIFY", "CHECKPOINT"]) {
        return Some("it concerns other sessions");
    }
    let changes = begins_with(&["CREATE", "ALTER", "DROP"])
        && words(statement).nth(1).is_some_and(|word| is_one_of(word, &CHANGING_THE_SERVER));
    (changes || begins_with(&["LOAD"])).then_some("it changes the server and not its tables")
}

/// What is in no brackets: the query or the columns of a COPY may have any words.
fn outside_of_brackets(statement: &str) -> String {
    let mut depth = 0_usize;
    let outside = |sign: &char| {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        depth == 0
    };
    statement.chars().filter(outside).collect()
}

/// Whether a call sets something for the rest of its session: what comes before the part that is sent must not be without it.
pub(crate) fn is_setting(call: &Call) -> bool {
    let mut words = call.text.split_ascii_whitespace();
    let is = |word: Option<&str>, any: &[&str]| {
        word.is_some_and(|word| any.iter().any(|one| word.eq_ignore_ascii_case(one)))
    };
    is(words.next(), &["SET"])
        && !is(words.next(), &["LOCAL", "TRANSACTION", "CONSTRAINTS"])
        && !matches!(call.ending, Ending::Failed(_))
        && why(call).is_none()
}

fn is_one_of(word: &str, any: &[&str]) -> bool {
    any.iter().any(|one| word.eq_ignore_ascii_case(one))
}

fn is_dblink(word: &str) -> bool {
    word.get(..DBLINK.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(DBLINK))
}

/// The words of a text. Those in literals and comments count too: a statement too many is left out, and said.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(move |letter| !is_word(letter)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Protocol;

    use super::*;
    use crate::testing::call;

    #[test]
    fn each_statement_of_a_text_is_looked_at_whatever_its_protocol() {
        let (files, server) = ("it reads or writes files of the server", "it changes the server and not its tables");
        let looked_at = [
            ("COPY t TO '/tmp/f'", Some(files)),
            ("COPY t FROM PROGRAM 'curl'", Some(files)),
            ("COPY t FROM '/tmp/stdin'", Some(files)),
            ("copy (select 'stdout', stdin from t) to '/tmp/f'", Some(files)),
            ("/* a /* b */ c */ -- d\nCOPY t TO '/tmp/f'", Some(files)),
            ("SELECT 1; COPY t TO '/tmp/f'", Some(files)),
            ("SELECT ';'; ALTER SYSTEM SET a = 1", Some(server)),
            ("LOAD 'dblink'", Some(server)),
            ("COPY t (a, b) FROM STDIN", Some("rows of COPY are in no log")),
            ("COPY (SELECT 1) TO STDOUT", None),
            ("SELECT 'COPY t TO; COPY t TO'", None),
            // By either setting of standard_conforming_strings.
            ("SELECT 'a\\'; COPY t TO ''/tmp/f'; --'", Some(files)),
            ("SELECT 'a\\'' ; COPY t TO $$/tmp/f$$; --'", Some(files)),
        ];
        for (text, wanted) in looked_at {
            for protocol in [Protocol::Text, Protocol::Unnamed, Protocol::Named] {
                let one = Call { protocol, ..call(text, Ending::Done(1)) };
                assert_eq!(why(&one), wanted, "{text}");
                assert_eq!(Sent::default().why(&one, Some(0)), wanted, "{text}");
            }
        }
    }

    #[test]
    fn what_no_capture_can_have_is_left_out_and_said() {
        let plain = call("SELECT 1", Ending::Done(1));
        let many = Call { values: vec![None; VALUES_MAX + 1], ..plain.clone() };
        let cannot_be = [
            (Call { due_us: i64::MIN, ..plain.clone() }, "its time cannot be"),
            (Call { due_us: i64::MAX, ..plain.clone() }, "its time cannot be"),
            (Call { ending: Ending::Done(u64::MAX), ..plain.clone() }, "its time cannot be"),
            (many, "it has more parameters than a statement can have"),
            (
                Call { text: "SELECT 1\0".to_owned(), ..plain.clone() },
                "it has a zero byte, which no text of PostgreSQL has",
            ),
            (
                Call { values: vec![Some("\0".to_owned())], ..plain.clone() },
                "it has a zero byte, which no text of PostgreSQL has",
            ),
        ];
        for (one, wanted) in cannot_be {
            let mut sent = Sent::default();
            assert_eq!(sent.why(&plain, Some(0)), None);
            assert_eq!(sent.why(&one, Some(0)), Some(wanted), "its text is known, and was sent");
        }
    }

    #[test]
    fn what_is_known_of_a_text_is_what_is_found_in_it() {
        let texts = ["SELECT 1", "COPY t FROM STDIN", "SELECT dblink_exec('')", "CHECKPOINT"];
        let mut sent = Sent::default();
        for (number, text) in texts.iter().enumerate() {
            let plain = call(text, Ending::Done(1));
            let calls = [
                plain.clone(),
                Call { protocol: Protocol::Named, ..plain.clone() },
                Call { rows: Some(vec![1]), ..plain.clone() },
                Call { cut: true, ..plain.clone() },
                Call { without_values: true, ..plain.clone() },
                plain,
            ];
            for one in &calls {
                for known in [None, Some(number)] {
                    assert_eq!(sent.why(one, known), why(one), "{text}");
                }
            }
        }
        assert_eq!(sent.0.len(), 1);
    }
}
