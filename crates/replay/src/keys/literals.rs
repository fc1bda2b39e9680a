//! Where the literals of a statement's text are.
//!
//! Lexical rules: PostgreSQL's documentation, "Lexical Structure".

use std::ops::Range;

/// Passes the places of whole numbers and of the contents of quoted literals to `each`. A content with escapes in it is
/// passed as it stands.
pub(crate) fn literals(text: &str, mut each: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            b'\'' => {
                let end = quoted_end(bytes, at + 1, is_escaping(bytes, at));
                each(at + 1..end);
                end + 1
            }
            b'"' => find(bytes, at + 1, b"\"") + 1,
            b'-' if bytes[at..].starts_with(b"--") => find(bytes, at, b"\n"),
            b'/' if bytes[at..].starts_with(b"/*") => find(bytes, at + 2, b"*/") + 2,
            b'$' => after_dollar(bytes, at),
            byte if byte.is_ascii_digit() => {
                let end = end_of(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
                if bytes[at..end].iter().all(u8::is_ascii_digit) {
                    each(at..end);
                }
                end
            }
            byte if is_word(byte) => end_of(bytes, at, |byte| is_word(byte) || byte == b'$'),
            _ => at + 1,
        };
    }
}

/// Whether the literal that begins here has escapes: `E'…'`.
fn is_escaping(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes[at - 1], b'e' | b'E') && !(at > 1 && is_word(bytes[at - 2]))
}

/// Where the content of a quoted literal ends.
fn quoted_end(bytes: &[u8], begin: usize, escapes: bool) -> usize {
    let mut at = begin;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Behind a parameter's number, or behind a literal in dollars.
fn after_dollar(bytes: &[u8], at: usize) -> usize {
    let tag = end_of(bytes, at + 1, is_word);
    if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) || bytes.get(tag) != Some(&b'$') {
        return tag;
    }
    let fence = &bytes[at..=tag];
    find(bytes, tag + 1, fence) + fence.len()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(what.len()).position(|found| found == what).map_or(bytes.len(), |place| from + place)
}

fn end_of(bytes: &[u8], from: usize, goes_on: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|byte| goes_on(**byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut places = Vec::new();
        literals(text, |place| places.push(place));
        places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn literals_are_found_where_they_are() {
        assert_eq!(found("SELECT 5, 'a''b', 7.5 FROM t1 WHERE id=42"), ["5", "a''b", "42"]);
        assert_eq!(found("UPDATE t SET n = E'it\\'s 3' WHERE k = 'x'"), ["it\\'s 3", "x"]);
        assert_eq!(found("SELECT $1, \"9\", $$ 3 $$, $q$ '4' $q$, 8 -- 6\n, 7 /* '2' */"), ["8", "7"]);
    }

    #[test]
    fn what_does_not_end_is_no_trouble() {
        for text in ["'", "E'\\", "$$", "$a$ 5", "/* 5", "\"5", "--", "1.", "é5"] {
            found(text);
        }
    }
}
