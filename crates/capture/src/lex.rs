//! The parts of a statement's text: words, literals, comments.
//!
//! Lexical rules: PostgreSQL's documentation, "Lexical Structure", and its `scan.l`. They depend on `standard_conforming_strings`, which no
//! log says, so who needs certainty reads a text [both ways](Backslash).

use std::borrow::Cow;
use std::ops::Range;

/// What a backslash is in a literal without `E`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backslash {
    /// A letter like others: `standard_conforming_strings = on`, the default.
    Letter,
    /// The begin of an escape: `standard_conforming_strings = off`.
    Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blank,
    Comment,
    /// A keyword or a name.
    Word,
    /// A name in quotes.
    Name,
    Literal,
    Number,
    /// `$1`.
    Parameter,
    /// Any other letter.
    Sign,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub place: Range<usize>,
    /// What is between the marks of a literal, a name in quotes or a comment; else the same place.
    pub inner: Range<usize>,
    /// Of a literal: whether it has escapes with backslashes.
    escapes: bool,
    /// Of a literal: whether it stands in apostrophes.
    quoted: bool,
    /// Whether it has its end.
    pub closed: bool,
}

impl Token {
    /// What a literal means, as far as apostrophes go.
    pub(crate) fn content<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let inner = &text[self.inner.clone()];
        if !self.quoted || !inner.contains(['\'', '\\']) {
            return Cow::Borrowed(inner);
        }
        let mut out = String::with_capacity(inner.len());
        let mut letters = inner.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' => drop(letters.next()),
                '\\' if self.escapes => {
                    out.extend(letters.next().map(|letter| if letter == 'n' { '\n' } else { letter }));
                    continue;
                }
                _ => (),
            }
            out.push(letter);
        }
        Cow::Owned(out)
    }
}

/// The parts of a text, in order and without gaps.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    backslash: Backslash,
    /// The literal that goes on if an apostrophe comes in a later line: whether it has escapes, and whether the line has ended.
    before: Option<(bool, bool)>,
}

pub(crate) fn tokens(text: &str, backslash: Backslash) -> Tokens<'_> {
    Tokens { text, at: 0, backslash, before: None }
}

/// Whether a text can be a statement if it is read so: what is begun ends, and no backslash stands alone.
pub(crate) fn is_whole(text: &str, backslash: Backslash) -> bool {
    tokens(text, backslash).all(|token| token.closed && (token.kind != Kind::Sign || &text[token.place] != "\\"))
}

/// Whether it matters how a text is read.
pub(crate) fn is_ambiguous(text: &str) -> bool {
    memchr::memchr_iter(b'\\', text.as_bytes()).any(|at| matches!(text.as_bytes().get(at + 1), Some(b'\'' | b'\\')))
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let (bytes, begin) = (self.text.as_bytes(), self.at);
        let first = *bytes.get(begin)?;
        let next = bytes.get(begin + 1).copied();
        let token = match first {
            _ if is_blank(first) => self.plain(Kind::Blank, run(bytes, begin, is_blank)),
            b'-' if next == Some(b'-') => {
                let end = memchr::memchr2(b'\n', b'\r', &bytes[begin..]).map_or(bytes.len(), |end| begin + end);
                self.marked(Kind::Comment, (begin + 2, end), (end, true))
            }
            b'/' if next == Some(b'*') => {
                let end = comment_end(bytes, begin);
                let close = end.unwrap_or(bytes.len());
                self.marked(Kind::Comment, (begin + 2, end.map_or(close, |end| end - 2)), (close, end.is_some()))
            }
            b'\'' => self.literal(begin, None),
            b'"' => self.name(begin),
            b'$' if next.is_some_and(|byte| byte.is_ascii_digit()) => {
                self.plain(Kind::Parameter, run(bytes, begin + 1, |byte| byte.is_ascii_digit()))
            }
            b'$' => self.in_dollars(begin).unwrap_or_else(|| self.plain(Kind::Sign, begin + 1)),
            _ if first.is_ascii_digit() || (first == b'.' && next.is_some_and(|byte| byte.is_ascii_digit())) => {
                self.plain(Kind::Number, number_end(bytes, begin))
            }
            _ if is_letter(first) => self.word(begin),
            // The other letters of ASCII.
            _ => self.plain(Kind::Sign, begin + 1),
        };
        self.before = match token.kind {
            Kind::Literal if token.quoted => Some((token.escapes, false)),
            Kind::Blank => {
                let ends_line = memchr::memchr2(b'\n', b'\r', &bytes[token.place.clone()]).is_some();
                self.before.map(|(escapes, line_ended)| (escapes, line_ended || ends_line))
            }
            Kind::Comment if next == Some(b'-') => self.before,
            _ => None,
        };
        self.at = token.place.end;
        Some(token)
    }
}

impl Tokens<'_> {
    fn plain(&self, kind: Kind, end: usize) -> Token {
        let place = self.at..end;
        Token { kind, inner: place.clone(), place, escapes: false, quoted: false, closed: true }
    }

    fn marked(&self, kind: Kind, inner: (usize, usize), (end, closed): (usize, bool)) -> Token {
        let inner = inner.0.min(end)..inner.1.max(inner.0).min(end);
        Token { kind, place: self.at..end, inner, escapes: false, quoted: false, closed }
    }

    /// A literal whose apostrophe is at `mark`, behind its letters if it has any. What they say of escapes is in `escapes`.
    fn literal(&self, mark: usize, escapes: Option<bool>) -> Token {
        let goes_on = self.before.filter(|(_, line_ended)| *line_ended).map(|(escapes, _)| escapes);
        let escapes = escapes.or(goes_on).unwrap_or(self.backslash == Backslash::Escape);
        let bytes = self.text.as_bytes();
        let mut at = mark + 1;
        let end = loop {
            match bytes.get(at) {
                None => break None,
                Some(b'\\') if escapes => at += 2,
                Some(b'\'') if bytes.get(at + 1) == Some(&b'\'') => at += 2,
                Some(b'\'') => break Some(at),
                Some(_) => at += 1,
            }
        };
        let close = end.unwrap_or(bytes.len());
        let token = self.marked(Kind::Literal, (mark + 1, close), (end.map_or(close, |end| end + 1), end.is_some()));
        Token { escapes, quoted: true, ..token }
    }

    /// A name in quotes, whose first quote is at `mark`.
    fn name(&self, mark: usize) -> Token {
        let bytes = self.text.as_bytes();
        let mut at = mark + 1;
        while let Some(end) = memchr::memchr(b'"', &bytes[at..]).map(|end| at + end) {
            if bytes.get(end + 1) != Some(&b'"') {
                return self.marked(Kind::Name, (mark + 1, end), (end + 1, true));
            }
            at = end + 2;
        }
        self.marked(Kind::Name, (mark + 1, bytes.len()), (bytes.len(), false))
    }

    /// A word, or a literal or a name that begins with letters: `E'…'`, `B'…'`, `X'…'`, `N'…'`, `U&'…'`, `U&"…"`.
    fn word(&self, begin: usize) -> Token {
        let bytes = self.text.as_bytes();
        let end = run(bytes, begin, |byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'$');
        match (&bytes[begin..end], bytes.get(end), bytes.get(end + 1)) {
            (b"E" | b"e", Some(b'\''), _) => self.literal(end, Some(true)),
            (b"B" | b"b" | b"X" | b"x", Some(b'\''), _) => self.literal(end, Some(false)),
            // It is a literal like one without the letter.
            (b"N" | b"n", Some(b'\''), _) => self.literal(end, Some(self.backslash == Backslash::Escape)),
            (b"U" | b"u", Some(b'&'), Some(b'\'')) => self.literal(end + 1, Some(false)),
            (b"U" | b"u", Some(b'&'), Some(b'"')) => self.name(end + 1),
            _ => self.plain(Kind::Word, end),
        }
    }

    /// `$tag$…$tag$`.
    fn in_dollars(&self, begin: usize) -> Option<Token> {
        let bytes = self.text.as_bytes();
        let tag_end = run(bytes, begin + 1, |byte| is_letter(byte) || byte.is_ascii_digit());
        if bytes.get(tag_end) != Some(&b'$') {
            return None;
        }
        let (fence, body) = (&self.text[begin..=tag_end], tag_end + 1);
        let end = memchr::memmem::find(&bytes[body..], fence.as_bytes()).map(|end| body + end);
        let close = end.unwrap_or(bytes.len());
        Some(self.marked(Kind::Literal, (body, close), (end.map_or(close, |end| end + fence.len()), end.is_some())))
    }
}

fn run(bytes: &[u8], from: usize, goes_on: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|byte| goes_on(**byte)).count()
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Whether a name may begin with it. Bytes of other alphabets count.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Comments nest.
fn comment_end(bytes: &[u8], from: usize) -> Option<usize> {
    let (mut at, mut depth) = (from, 0_u32);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth.saturating_add(1)),
            (b'*', Some(b'/')) => {
                (at, depth) = (at + 2, depth.saturating_sub(1));
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// Letters that follow a number belong to it: `1e10`, `0xff`, `1_000`.
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

    fn literals(text: &str, backslash: Backslash) -> Vec<String> {
        let found = tokens(text, backslash).filter(|token| token.kind == Kind::Literal);
        found.map(|token| token.content(text).into_owned()).collect()
    }

    #[test]
    fn literals_end_where_the_server_ends_them() {
        let cases: [(&str, &[&str], &[&str]); 12] = [
            ("SELECT 'a\\'b', c, 'd'", &["a\\", ", c, ", ""], &["a'b", "d"]),
            ("SELECT E'a\\'b', N'c'", &["a'b", "c"], &["a'b", "c"]),
            ("LIKE 'x' ESCAPE '\\'", &["x", "\\"], &["x", "'"]),
            ("U&'d\\0061' B'1' X'f\\'", &["d\\0061", "1", "f\\"], &["d\\0061", "1", "f\\"]),
            // A literal goes on in a later line as what it began with.
            ("E'a'\n 'b\\'c'", &["a", "b'c"], &["a", "b'c"]),
            ("E'a' -- more\n 'b\\'c'", &["a", "b'c"], &["a", "b'c"]),
            ("E'a' 'b\\'", &["a", "b\\"], &["a", "b'"]),
            ("$$a'b$$ $t$ $$ $t$ 'it''s'", &["a'b", " $$ ", "it's"], &["a'b", " $$ ", "it's"]),
            ("a$b$c 'x' $1$2", &["x"], &["x"]),
            ("\"it's \"\"quoted\" 'x'", &["x"], &["x"]),
            ("/* it's /* ' */ */ -- '\n'x'", &["x"], &["x"]),
            ("someE'x' 'y", &["x", "y"], &["x", "y"]),
        ];
        for (text, plain, escaping) in cases {
            assert_eq!(literals(text, Backslash::Letter), plain, "{text}");
            assert_eq!(literals(text, Backslash::Escape), escaping, "{text}");
        }
    }

    #[test]
    fn a_reading_that_no_server_takes_is_not_whole() {
        for (text, plain, escaping) in [
            ("SELECT 'a\\'b'", false, true),
            ("LIKE 'x' ESCAPE '\\'", true, false),
            ("a LIKE 'x' ESCAPE '\\' AND b LIKE 'y' ESCAPE '\\' AND c = 'z'", true, false),
            ("SELECT 'a\\', 'b'", true, false),
            ("SELECT 'C:\\', b, 'd', ' , 'e'", false, true),
            ("SELECT \"a", false, false),
            ("SELECT 1 /* a", false, false),
            ("SELECT $$ a", false, false),
            ("SELECT 'a', b", true, true),
        ] {
            assert_eq!(is_whole(text, Backslash::Letter), plain, "{text}");
            assert_eq!(is_whole(text, Backslash::Escape), escaping, "{text}");
        }
    }

    proptest! {
        #[test]
        fn tokens_are_all_of_a_text(text in "[ -~äß\n]{0,60}", escape in any::<bool>()) {
            let backslash = if escape { Backslash::Escape } else { Backslash::Letter };
            let mut at = 0;
            for token in tokens(&text, backslash) {
                prop_assert_eq!(token.place.start, at);
                prop_assert!(token.place.end > at);
                at = token.place.end;
                let _ = token.content(&text);
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
