//! The shape of a statement: its text without values. Statements are counted by it, and it can be shown.

use crate::lex::{Backslash, Kind, Token, is_ambiguous, is_whole, tokens};

/// First words of statements that set a parameter of the server, each with whether the value is all that follows.
const SETTING: [(&str, bool); 3] = [("SET", true), ("ALTER", false), ("CREATE", false)];
/// Second words of an ALTER whose SET is its end.
const ENDING_WITH_SET: [&str; 4] = ["ROLE", "USER", "DATABASE", "SYSTEM"];

/// The text with `?` in place of each literal and of each value that SET gives a parameter, blanks and comments as one blank. A comment goes because
/// tools write values into it. Lists of literals become one `?`, so that `IN (1, 2, 3)` and `IN (1, 2)` are one shape.
///
/// With `standard_conforming_strings = off` a literal with a backslash ends elsewhere. No log has that setting, so a text that is a statement both
/// with it and without it shows what is outside of literals in both.
pub fn shape(text: &str) -> String {
    shape_of(text, false)
}

/// The same. Of a text that the server refused both readings are `doubted`, also one by which it is no statement: what is a literal in either is one.
pub(crate) fn shape_of(text: &str, doubted: bool) -> String {
    match if is_ambiguous(text) { literals_otherwise(text, doubted) } else { Otherwise::None } {
        Otherwise::None => shaped(text, Backslash::Letter, Vec::new()),
        Otherwise::Alone => shaped(text, Backslash::Escape, Vec::new()),
        Otherwise::Beside(places) => shaped(text, Backslash::Letter, places),
    }
}

/// The shape by one reading, with more places that are hidden.
fn shaped(text: &str, backslash: Backslash, hidden: Vec<(usize, usize)>) -> String {
    let mut places = hidden.into_iter().peekable();
    let mut out = Shaped::default();
    let mut setting = Setting::default();
    for token in tokens(text, backslash) {
        while places.peek().is_some_and(|(_, end)| *end <= token.place.start) {
            places.next();
        }
        let is_literal_too = places.peek().is_some_and(|(begin, _)| *begin < token.place.end);
        let word = &text[token.place.clone()];
        match token.kind {
            Kind::Blank | Kind::Comment => out.blank(),
            _ if setting.hides(&token, word) || is_literal_too => out.value(),
            Kind::Literal | Kind::Number => out.value(),
            _ => out.word(word),
        }
    }
    out.text.trim_end().to_owned()
}

/// The shapes of a text, one for each way in which a server may read it: what one reading takes for a literal is a statement in the other.
pub fn readings(text: &str) -> Vec<String> {
    let other = is_ambiguous(text).then(|| shaped(text, Backslash::Escape, Vec::new()));
    std::iter::once(shaped(text, Backslash::Letter, Vec::new())).chain(other).collect()
}

/// Where literals are if a backslash begins an escape in each.
enum Otherwise {
    /// The text is no statement then.
    None,
    /// The text is a statement only so.
    Alone,
    /// Both may be: begin and end of each.
    Beside(Vec<(usize, usize)>),
}

fn literals_otherwise(text: &str, doubted: bool) -> Otherwise {
    let (plain, escaping) = (is_whole(text, Backslash::Letter), is_whole(text, Backslash::Escape));
    match (plain, escaping) {
        (true, false) if !doubted => Otherwise::None,
        (false, true) if !doubted => Otherwise::Alone,
        _ => {
            let found = tokens(text, Backslash::Escape).filter(|token| token.kind == Kind::Literal);
            Otherwise::Beside(found.map(|token| (token.place.start, token.place.end)).collect())
        }
    }
}

/// How far a statement is that may set a parameter: `SET [SESSION | LOCAL] NAME {= | TO} VALUE [, VALUE]…`.
#[derive(Default)]
struct Setting {
    /// Words of the statement so far, of which the first two count.
    first: Option<usize>,
    ends_with_set: bool,
    words: usize,
    state: State,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    /// Behind SET, or in the name.
    Named,
    /// What follows is the value.
    Value,
    /// One value is over; a comma has another.
    Over,
    /// All that follows is.
    Rest,
}

impl Setting {
    /// Takes the next part of a text. Whether it is of a value.
    fn hides(&mut self, token: &Token, word: &str) -> bool {
        if word == ";" {
            *self = Self::default();
            return false;
        }
        let is = |any: &str| token.kind == Kind::Word && word.eq_ignore_ascii_case(any);
        match self.words {
            0 => self.first = SETTING.iter().position(|(first, _)| is(first)),
            1 => self.ends_with_set = ENDING_WITH_SET.iter().any(|second| is(second)),
            _ => (),
        }
        self.words += 1;
        let Some((_, is_all)) = self.first.map(|place| SETTING[place]) else { return false };
        let is_all = is_all || self.ends_with_set;
        match self.state {
            State::Rest => return true,
            _ if is("SET") => self.state = State::Named,
            State::Named if word == "=" || is("TO") => self.state = if is_all { State::Rest } else { State::Value },
            State::Named if matches!(token.kind, Kind::Word | Kind::Name) || word == "." => (),
            State::Value if word == "+" || word == "-" => return true,
            State::Value => {
                self.state = State::Over;
                return true;
            }
            State::Over if word == "," => self.state = State::Value,
            _ => self.state = State::Outside,
        }
        false
    }
}

#[derive(Default)]
struct Shaped {
    text: String,
}

impl Shaped {
    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
    }

    fn word(&mut self, word: &str) {
        self.text.push_str(word);
    }

    /// A literal; one that follows another one and a comma is the same list.
    fn value(&mut self) {
        let before = self.text.trim_end();
        if let Some(list) = before.strip_suffix(',').map(str::trim_end).filter(|list| list.ends_with('?')) {
            self.text.truncate(list.len());
        } else if before.ends_with('?') {
            // Two literals behind each other are one that goes on in the next line.
            self.text.truncate(before.len());
        } else {
            self.text.push('?');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_become_question_marks() {
        let cases = [
            ("SELECT 1", "SELECT ?"),
            ("SELECT a1, $2 FROM t WHERE b = 'it''s' AND c=-1.5e-3", "SELECT a1, $2 FROM t WHERE b = ? AND c=-?"),
            ("SELECT E'a\\'b', B'01', U&'x', N'y'", "SELECT ?"),
            ("SELECT $$a'b$$ , $x$ $$ $x$;", "SELECT ?;"),
            ("SELECT /* id=5 /* n */ */ 1 -- 7\n, a", "SELECT ? , a"),
            ("WHERE a IN (1, 2,3) AND \"B 2\" = 4", "WHERE a IN (?) AND \"B 2\" = ?"),
            ("SELECT 'a'\n'b', x.y", "SELECT ?, x.y"),
            ("SELECT $1::text, 'open", "SELECT $1::text, ?"),
            ("VALUES ('ä', ü)", "VALUES (?, ü)"),
        ];
        for (text, wanted) in cases {
            assert_eq!(shape(text), wanted, "{text}");
        }
    }

    #[test]
    fn literals_are_hidden_whatever_a_backslash_is_in_them() {
        let cases = [
            // Only with standard_conforming_strings = off.
            ("select 'a\\'LIT14 '", "select ?"),
            ("select 'a\\'b', c, 'd' from t", "select ?, c, ? from t"),
            // Only with it on.
            (
                "SELECT a FROM t WHERE b LIKE '%x%' ESCAPE '\\' AND c = 5",
                "SELECT a FROM t WHERE b LIKE ? ESCAPE ? AND c = ?",
            ),
            ("SELECT 'C:\\', secret FROM t WHERE d = 7", "SELECT ?, secret FROM t WHERE d = ?"),
            // With both: what is outside in one reading is a value in the other.
            ("SELECT 'a\\' -- one's\n, two", "SELECT ? , two"),
            ("SELECT 'a\\' /* it's */, two FROM t -- LIT's", "SELECT ? , two FROM t"),
            ("SELECT E'a'\n'b\\'secret' FROM t", "SELECT ? FROM t"),
            ("SELECT U&'d\\0061t' UESCAPE '!', N'x\\'LIT' FROM t", "SELECT ? UESCAPE ? FROM t"),
            ("SELECT \"it's \\\", '5' FROM \"T 7\"", "SELECT \"it's \\\", ? FROM \"T 7\""),
            ("SELECT 0xFF, 0o17, 0b101, 1_000, .5e-3, 1e+10 FROM t", "SELECT ? FROM t"),
        ];
        for (text, wanted) in cases {
            assert_eq!(shape(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_text_that_was_refused_is_shown_as_far_as_it_is_no_literal_in_either_reading() {
        let text = "SELECT 'a\\' AND secret ESCAPE 'b'";
        assert_eq!(shape_of(text, true), "SELECT ?");
    }

    #[test]
    fn what_a_parameter_is_set_to_is_a_value() {
        let cases = [
            ("set my.x = abc", "set my.x = ?"),
            ("SET LOCAL app.user_id TO tenant_7, b; SELECT x", "SET LOCAL app.user_id TO ?; SELECT x"),
            ("SET SESSION \"my.x\" = abc-def", "SET SESSION \"my.x\" = ?"),
            ("/* a */ SET search_path TO a, b", "SET search_path TO ?"),
            ("ALTER ROLE app IN DATABASE shop SET my.x = abc", "ALTER ROLE app IN DATABASE shop SET my.x = ?"),
            ("ALTER SYSTEM SET log_statement TO ddl", "ALTER SYSTEM SET log_statement TO ?"),
            (
                "CREATE FUNCTION f() RETURNS int SET my.x = abc, d LANGUAGE sql AS 'x'",
                "CREATE FUNCTION f() RETURNS int SET my.x = ? LANGUAGE sql AS ?",
            ),
            ("SET ROLE app", "SET ROLE app"),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
            ("UPDATE t SET a = b, c.d = e WHERE f = g", "UPDATE t SET a = b, c.d = e WHERE f = g"),
            (
                "ALTER TABLE t ALTER c SET DEFAULT now(), SET (fillfactor = 70)",
                "ALTER TABLE t ALTER c SET DEFAULT now(), SET (fillfactor = ?)",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(shape(text), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_literal_is_shown_whatever_the_setting_is(value in "[a-z'\\\\]{0,8}", other in "[a-z'\\\\ ]{0,8}", off in any::<bool>()) {
            // As an application writes it by the rules of that setting.
            let quoted = |value: &str| {
                let value = value.replace('\'', "''");
                format!("'{}SECRET'", if off { value.replace('\\', "\\\\") } else { value })
            };
            let text = format!("SELECT a, {}, {} FROM t", quoted(&value), quoted(&other));
            let found = shape(&text);
            prop_assert!(!found.contains("SECRET"), "{} -> {}", text, found);
        }

        #[test]
        fn no_literal_is_left_whatever_it_holds(value in "[^\\\\]{0,40}", before in "[ a-z(,=]{0,8}") {
            let literal = value.replace('\'', "''");
            let text = format!("SELECT{before} 'begin{literal}secret' , 'next', 20481 FROM t");
            let found = shape(&text);
            prop_assert!(!found.contains("secret") && !found.contains("20481") && !found.contains("next"), "{}", found);
            prop_assert!(found.ends_with(" FROM t"), "{}", found);
        }
    }
}
