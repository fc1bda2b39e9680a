//! The shape of a statement: its text without values. Statements are counted by it, and it can be shown.

/// The text with `?` in place of each literal, blanks and comments as one blank. A comment goes because tools write values
/// into it. Lists of literals become one `?`, so that `IN (1, 2, 3)` and `IN (1, 2)` are one shape.
///
/// Lexical rules: PostgreSQL's documentation, "Lexical Structure". With `standard_conforming_strings = off` a backslash
/// before an apostrophe would end the literal too late, never too early.
pub fn shape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Shaped::default();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                out.blank();
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
                out.blank();
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = comment_end(bytes, at);
                out.blank();
            }
            b'\'' => {
                // `E'…'` has escapes; `N'…'`, `B'…'`, `X'…'`, `U&'…'` have none.
                let escapes = out.take_prefix();
                at = literal_end(bytes, at + 1, escapes);
                out.value();
            }
            b'"' => {
                at = memchr::memchr(b'"', &bytes[at + 1..]).map_or(bytes.len(), |end| at + end + 2);
                out.word(&text[begin..at]);
            }
            b'$' => {
                if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
                    at += 1 + bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    out.word(&text[begin..at]);
                } else if let Some(end) = dollar_end(text, at) {
                    at = end;
                    out.value();
                } else {
                    at += 1;
                    out.word("$");
                }
            }
            byte if byte.is_ascii_digit() || (byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) => {
                at = number_end(bytes, at);
                out.value();
            }
            byte if is_name(byte) => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| is_name(**byte) || byte.is_ascii_digit() || **byte == b'$')
                    .count();
                out.word(&text[begin..at]);
            }
            _ => {
                at += 1;
                out.word(&text[begin..at]);
            }
        }
    }
    out.text.trim_end().to_owned()
}

/// Whether a name may begin with it. Bytes of other alphabets count.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
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

    /// Takes the letters away that belong to the literal behind them. Whether it has escapes.
    fn take_prefix(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let letters = bytes.iter().rev().take_while(|byte| is_name(**byte) || byte.is_ascii_digit()).count();
        let word = &self.text[self.text.len() - letters..];
        if matches!(word, "E" | "e" | "B" | "b" | "X" | "x" | "N" | "n") {
            let escapes = word.eq_ignore_ascii_case("e");
            self.text.pop();
            return escapes;
        }
        if self.text.ends_with("U&") || self.text.ends_with("u&") {
            self.text.truncate(self.text.len() - 2);
        }
        false
    }
}

fn literal_end(bytes: &[u8], from: usize, escapes: bool) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Comments nest.
fn comment_end(bytes: &[u8], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0_u32);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            (b'*', Some(b'/')) => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `$tag$…$tag$`.
fn dollar_end(text: &str, from: usize) -> Option<usize> {
    let rest = &text[from + 1..];
    let tag = rest.bytes().take_while(|byte| is_name(*byte) || byte.is_ascii_digit()).count();
    if rest.as_bytes().get(tag) != Some(&b'$') {
        return None;
    }
    let fence = &text[from..from + tag + 2];
    let body = from + fence.len();
    Some(text[body..].find(fence).map_or(text.len(), |end| body + end + fence.len()))
}

fn number_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'0'..=b'9' | b'.' | b'_' | b'a'..=b'z' | b'A'..=b'Z' => at += 1,
            b'+' | b'-' if matches!(bytes[at - 1], b'e' | b'E') => at += 1,
            _ => break,
        }
    }
    at
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

    proptest! {
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
