//! Cuts a script into SQL statements and backslash commands, by the rules of psql's scanner: a semicolon ends a
//! statement unless it stands in a string, a quoted name, a comment, parentheses, or the `BEGIN ATOMIC … END` of a routine
//! (PostgreSQL 14); a backslash begins a command that takes the rest of its line, and ends the statement before it.

use crate::error::Position;
use std::ops::Range;

/// A piece of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A statement, without the semicolon that ended it.
    Sql { at: usize, text: String },
    /// A command: where its name stands, and where the rest of its line does.
    Meta { at: usize, name: Range<usize>, rest: Range<usize> },
}

/// Something that is not closed, and where it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unclosed {
    pub at: usize,
    pub what: &'static str,
}

/// Where a byte stands.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let before = &text[..offset.min(text.len())];
    let line_begin = before.rfind('\n').map_or(0, |at| at + 1);
    Position { line: before.matches('\n').count() as u32 + 1, column: before[line_begin..].chars().count() as u32 + 1 }
}

/// Reads a script piece by piece.
pub(crate) struct Source<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The next pieces: a statement may end where a command begins, so there can be two.
    pub fn next(&mut self) -> Result<Option<Piece>, Unclosed> {
        let comment = self.skip_blank()?;
        match self.rest() {
            [] => Ok(None),
            [b'\\', b';', ..] => {
                self.at += 2;
                self.statement(self.at - 2, String::from(";"))
            }
            [b'\\', ..] => Ok(Some(self.command())),
            _ => {
                let at = self.at;
                self.at = comment.unwrap_or(at);
                self.statement(at, String::new())
            }
        }
    }

    /// Passes what stands before a statement and is none: white space, lone semicolons, comments. Returns where the first
    /// `/*` comment before a statement begins, which is sent with it: it may be a hint to the planner, or a tag. What
    /// begins with `--` is left out, as by pgbench.
    fn skip_blank(&mut self) -> Result<Option<usize>, Unclosed> {
        let mut comment = None;
        loop {
            match self.rest() {
                [b'-', b'-', ..] => self.at += line_length(self.rest()),
                [b'/', b'*', ..] => {
                    comment.get_or_insert(self.at);
                    self.at += comment_length(self.rest()).ok_or(self.unclosed("comment"))?;
                }
                [b';', ..] => {
                    comment = None;
                    self.at += 1;
                }
                [first, ..] if first.is_ascii_whitespace() => self.at += 1,
                _ => return Ok(comment),
            }
        }
    }

    fn unclosed(&self, what: &'static str) -> Unclosed {
        Unclosed { at: self.at, what }
    }

    fn command(&mut self) -> Piece {
        let at = self.at;
        let length = continued_line_length(self.rest());
        let line = &self.text[at + 1..at + length];
        let name_length = line.find(|c: char| c.is_whitespace()).unwrap_or(line.len());
        self.at += length;
        let name = at + 1..at + 1 + name_length;
        Piece::Meta { at, rest: name.end..at + length, name }
    }

    fn statement(&mut self, at: usize, mut text: String) -> Result<Option<Piece>, Unclosed> {
        let mut depth = 0u32;
        let mut routine = Routine::default();
        loop {
            let rest = self.rest();
            let length = match rest {
                [] => break,
                [b';', ..] if depth == 0 && routine.depth == 0 => {
                    self.at += 1;
                    break;
                }
                [b'\\', b';', ..] => {
                    self.at += 2;
                    text.push(';');
                    continue;
                }
                [b'\\', ..] => break,
                [b'(', ..] => {
                    depth += 1;
                    1
                }
                [b')', ..] => {
                    depth = depth.saturating_sub(1);
                    1
                }
                [first, ..] => {
                    let length = self.token_length()?;
                    if is_name(*first) && depth == 0 {
                        routine.word(&self.text[self.at..self.at + length]);
                    }
                    length
                }
            };
            text.push_str(&self.text[self.at..self.at + length]);
            self.at += length;
        }
        text.truncate(text.trim_end().len());
        Ok(Some(Piece::Sql { at, text }))
    }

    /// How long the string, comment, name or single character here is.
    fn token_length(&self) -> Result<usize, Unclosed> {
        let rest = self.rest();
        match rest {
            [b'-', b'-', ..] => Ok(line_length(rest)),
            [b'/', b'*', ..] => comment_length(rest).ok_or(self.unclosed("comment")),
            [b'\'', ..] => quoted_length(rest, b'\'', false).ok_or(self.unclosed("string")),
            [b'"', ..] => quoted_length(rest, b'"', false).ok_or(self.unclosed("quoted name")),
            [b'e' | b'E', b'\'', ..] => {
                quoted_length(&rest[1..], b'\'', true).map(|length| length + 1).ok_or(self.unclosed("string"))
            }
            [b'$', ..] => match dollar_tag(rest) {
                Some(tag) => dollar_length(rest, tag).ok_or(self.unclosed("dollar-quoted string")),
                None => Ok(1),
            },
            [first, ..] if is_name(*first) => Ok(rest.iter().take_while(|&&b| is_name(b) || b == b'$').count()),
            _ => Ok(1),
        }
    }
}

/// How deep a statement is in the body of a routine that is written as statements. As psql counts: only after CREATE [OR REPLACE]
/// FUNCTION or PROCEDURE, BEGIN opens, and so does CASE inside, and END closes.
#[derive(Default)]
struct Routine {
    words: Beginning,
    depth: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Beginning {
    #[default]
    Nothing,
    Create,
    CreateOr,
    CreateOrReplace,
    Whole,
    Another,
}

impl Routine {
    fn word(&mut self, word: &str) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if self.words != Beginning::Whole {
            self.words = match self.words {
                Beginning::Nothing if is("create") => Beginning::Create,
                Beginning::Create if is("or") => Beginning::CreateOr,
                Beginning::CreateOr if is("replace") => Beginning::CreateOrReplace,
                Beginning::Create | Beginning::CreateOrReplace if is("function") || is("procedure") => Beginning::Whole,
                _ => Beginning::Another,
            };
        } else if is("begin") || (is("case") && self.depth > 0) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn line_length(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len())
}

/// A command's line; a backslash before the end of a line continues it.
fn continued_line_length(text: &[u8]) -> usize {
    let mut length = line_length(text);
    while length < text.len() {
        let line = text[..length].strip_suffix(b"\r").unwrap_or(&text[..length]);
        if !line.ends_with(b"\\") {
            break;
        }
        length += 1 + line_length(&text[length + 1..]);
    }
    length
}

fn comment_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        match text.get(at..at + 2)? {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    Some(at)
}

fn quoted_length(text: &[u8], quote: u8, escapes: bool) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'\\' if escapes => at += 2,
            // A doubled quote closes and opens again, which comes to the same.
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// `$tag$`, if here is one.
fn dollar_tag(text: &[u8]) -> Option<&[u8]> {
    let name = text[1..].iter().take_while(|&&byte| is_name(byte)).count();
    let begins_with_digit = text.get(1).is_some_and(u8::is_ascii_digit);
    (text.get(1 + name) == Some(&b'$') && !begins_with_digit).then(|| &text[..name + 2])
}

fn dollar_length(text: &[u8], tag: &[u8]) -> Option<usize> {
    let body = &text[tag.len()..];
    body.windows(tag.len()).position(|window| window == tag).map(|at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<String> {
        let mut source = Source::new(text);
        let mut found = Vec::new();
        while let Some(piece) = source.next().unwrap() {
            found.push(match piece {
                Piece::Sql { text, .. } => text,
                Piece::Meta { name, rest, .. } => format!("[{}|{}]", &text[name], text[rest].trim()),
            });
        }
        found
    }

    #[test]
    fn a_semicolon_ends_a_statement_only_outside_everything() {
        assert_eq!(pieces("SELECT 1; SELECT 2"), ["SELECT 1", "SELECT 2"]);
        assert_eq!(
            pieces("SELECT ';', \";\", (a; b), $$;$$, $x$ ; $$ $x$;"),
            ["SELECT ';', \";\", (a; b), $$;$$, $x$ ; $$ $x$"]
        );
        assert_eq!(
            pieces("SELECT E'\\';', 'it''s;' /* ; /* ; */ */ -- ;\n+ 1;"),
            ["SELECT E'\\';', 'it''s;' /* ; /* ; */ */ -- ;\n+ 1"]
        );
        assert_eq!(pieces("SELECT 1 \\; SELECT 2;"), ["SELECT 1 ; SELECT 2"]);
        assert_eq!(pieces("-- only a comment\n;; /* and another */"), [""; 0]);
    }

    #[test]
    fn the_body_of_a_routine_is_part_of_its_statement() {
        for whole in [
            "CREATE OR REPLACE FUNCTION two() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END",
            "create procedure p(a int) begin atomic insert into t values (a); insert into u values (a); end",
            "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 1 THEN 1 ELSE 2 END; SELECT 3; END",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$",
            "CREATE FUNCTION f() RETURNS int RETURN 1",
        ] {
            assert_eq!(pieces(&format!("{whole}; SELECT 1;")), [whole, "SELECT 1"]);
        }
        assert_eq!(pieces("BEGIN; SELECT 1; END;"), ["BEGIN", "SELECT 1", "END"]);
        assert_eq!(pieces("CREATE TABLE begin (a int); SELECT 1"), ["CREATE TABLE begin (a int)", "SELECT 1"]);
        assert_eq!(pieces("CREATE OR FUNCTION x BEGIN; END"), ["CREATE OR FUNCTION x BEGIN", "END"]);
    }

    #[test]
    fn a_hint_before_a_statement_is_sent_with_it_and_no_comment_before_a_command_or_the_end() {
        assert_eq!(pieces("-- a\n/*+ SeqScan(t) */ SELECT 1;"), ["/*+ SeqScan(t) */ SELECT 1"]);
        assert_eq!(pieces("/* a */ ; /* b */\n/* c */ SELECT 1; /* d */"), ["/* b */\n/* c */ SELECT 1"]);
        assert_eq!(pieces("/* head */\n\\set a 1\n/* tag */ SELECT :a"), ["[set|a 1]", "/* tag */ SELECT :a"]);
        assert!(matches!(Source::new("/* a */ SELECT 1").next(), Ok(Some(Piece::Sql { at: 8, .. }))));
    }

    #[test]
    fn a_command_takes_its_line_and_ends_the_statement_before_it() {
        assert_eq!(pieces("SELECT 1 AS a \\gset x_\nSELECT 2;"), ["SELECT 1 AS a", "[gset|x_]", "SELECT 2"]);
        assert_eq!(pieces("\\set a 1 + \\\n 2\n\\if :a\n"), ["[set|a 1 + \\\n 2]", "[if|:a]"]);
    }

    #[test]
    fn what_is_not_closed_is_said_with_its_beginning() {
        for (text, what, at) in
            [("SELECT 'a", "string", 7), ("a /* b", "comment", 2), ("$a$ $b$", "dollar-quoted string", 0)]
        {
            assert_eq!(Source::new(text).next(), Err(Unclosed { at, what }), "{text}");
        }
    }

    #[test]
    fn positions_count_lines_and_characters() {
        assert_eq!(position("é\nab", 4), Position { line: 2, column: 2 });
        assert_eq!(position("é", 2), Position { line: 1, column: 2 });
    }
}
