//! Statements that are not sent, and why.

use pgdyno_capture::{Call, Ending, Protocol};

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

/// Whether the texts of a capture's table were looked at and are sent, by their numbers: the same ones come again and again.
#[derive(Default)]
pub(crate) struct Sent(Vec<bool>);

impl Sent {
    /// Why a call is not sent, whose `text` has this number in the table; none if it is.
    pub(crate) fn why(&mut self, call: &Call, text: Option<usize>) -> Option<&'static str> {
        let is_whole = !call.without_values && !call.cut;
        if is_whole && text.is_some_and(|text| self.0.get(text) == Some(&true)) {
            return None;
        }
        let found = why(call);
        // Of a COPY it is not the text alone that decides.
        let is_copy = || words(&call.text).next().is_some_and(|word| word.eq_ignore_ascii_case("COPY"));
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
    let has = |any: &dyn Fn(&str) -> bool| words(&call.text).any(any);
    let first = words(&call.text).next().unwrap_or_default();
    let begins_with = |any: &[&str]| any.iter().any(|one| first.eq_ignore_ascii_case(one));
    if begins_with(&["COPY"]) && call.protocol != Protocol::Named {
        let from = has(&|word| word.eq_ignore_ascii_case("FROM"));
        let stdin = has(&|word| word.eq_ignore_ascii_case("STDIN"));
        if from && stdin {
            return call.rows.is_none().then_some("rows of COPY are in no log");
        }
        if !stdin && !has(&|word| word.eq_ignore_ascii_case("STDOUT")) {
            return Some("it reads or writes files of the server");
        }
    }
    if begins_with(&["NOTIFY", "CHECKPOINT"]) {
        return Some("it concerns other sessions");
    }
    if begins_with(&["CREATE", "ALTER", "DROP"])
        && words(&call.text).nth(1).is_some_and(|word| is_one_of(word, &CHANGING_THE_SERVER))
    {
        return Some("it changes the server and not its tables");
    }
    if has(&|word| word.len() >= SHORTEST && (is_one_of(word, &REACHING_OUT) || is_dblink(word))) {
        return Some("it leaves the server, or ends what others do");
    }
    None
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
    use super::*;
    use crate::testing::call;

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
