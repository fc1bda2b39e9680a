//! What a text does to the transaction of its session. A text of the simple protocol may have several statements, and those that begin and end
//! transactions divide it (PostgreSQL's documentation, "Multiple Statements in a Simple Query").

use crate::lex::{Backslash, Kind, tokens};

/// Words of a statement that are looked at: `ROLLBACK TRANSACTION AND NO CHAIN` is the longest that matters.
const WORDS_MAX: usize = 6;

/// What a text does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Whether a block is open behind it; none if it leaves that as it was.
    pub open: Option<bool>,
    /// The block behind it is not the one before it.
    pub is_another: bool,
    /// It opens a block somewhere, which stays open if a later statement of it fails.
    pub opens: bool,
    /// It ends a block, or would.
    pub ends: bool,
}

/// What a text does, with a block open before it or not.
pub(crate) fn effect(text: &str, in_block: bool) -> Effect {
    let mut effect = Effect::default();
    if !is_likely(text) {
        return effect;
    }
    let mut open = in_block;
    each_statement(text, |words| {
        let chains = words.iter().any(|word| word == "CHAIN") && !words.iter().any(|word| word == "NO");
        match words.first().map_or("", String::as_str) {
            "BEGIN" => (open, effect.opens) = (true, true),
            "START" if words.get(1).is_some_and(|word| word == "TRANSACTION") => (open, effect.opens) = (true, true),
            // Of two phases; the block was closed by PREPARE.
            "COMMIT" | "ROLLBACK" if words.get(1).is_some_and(|word| word == "PREPARED") => return,
            "ROLLBACK" | "ABORT" if words.iter().any(|word| word == "TO") => return,
            "COMMIT" | "END" | "ROLLBACK" | "ABORT" => {
                effect.ends = true;
                effect.is_another = chains;
                open = open && chains;
            }
            "PREPARE" if words.get(1).is_some_and(|word| word == "TRANSACTION") => (open, effect.ends) = (false, true),
            _ => return,
        }
        effect.is_another = open && (effect.is_another || effect.ends);
        effect.open = Some(open);
    });
    effect
}

/// Whether a text may do anything, by its first word or by having several statements.
fn is_likely(text: &str) -> bool {
    const WORDS: [&str; 7] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "PREPARE"];
    let text = text.trim_ascii();
    let end = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    // A comment, or nothing, before the first word.
    let is_hidden = end == 0 && !text.starts_with('(');
    is_hidden
        || WORDS.iter().any(|word| text[..end].eq_ignore_ascii_case(word))
        || memchr::memchr(b';', text.as_bytes()).is_some_and(|at| at + 1 < text.len())
}

/// Calls with the first words, in capitals, of each statement of a text. Bodies of functions are no statements of it, quoted or not.
fn each_statement(text: &str, mut call: impl FnMut(&[String])) {
    let mut words: Vec<String> = Vec::new();
    let mut depth = 0_u32; // of `BEGIN ATOMIC … END`
    let mut last = "";
    for token in tokens(text, Backslash::Letter) {
        let word = &text[token.place];
        if token.kind == Kind::Sign && word == ";" && depth == 0 {
            call(&words);
            words.clear();
            last = "";
        }
        if token.kind != Kind::Word {
            continue;
        }
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted);
        if words.first().is_some_and(|first| first == "CREATE") {
            if is("ATOMIC") && last.eq_ignore_ascii_case("BEGIN") || depth > 0 && is("CASE") {
                depth += 1;
            } else if depth > 0 && is("END") {
                depth -= 1;
            }
        }
        if words.len() < WORDS_MAX {
            words.push(word.to_ascii_uppercase());
        }
        last = word;
    }
    if !words.is_empty() {
        call(&words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a block is open behind a text, and whether it is another one.
    fn behind(text: &str, in_block: bool) -> (bool, bool) {
        let found = effect(text, in_block);
        (found.open.unwrap_or(in_block), found.is_another)
    }

    #[test]
    fn the_last_command_decides_whether_a_block_is_open() {
        for (text, before, open, another) in [
            ("BEGIN", false, true, false),
            ("begin isolation level serializable", false, true, false),
            ("START TRANSACTION READ ONLY", false, true, false),
            ("COMMIT", true, false, false),
            ("BEGIN;UPDATE a SET n = n + 1;COMMIT", false, false, false),
            ("BEGIN; SELECT 1;", false, true, false),
            ("COMMIT;BEGIN", true, true, true),
            ("commit; begin; select 1; end", true, false, false),
            ("ROLLBACK; START TRANSACTION", true, true, true),
            ("COMMIT AND CHAIN", true, true, true),
            ("COMMIT AND NO CHAIN", true, false, false),
            ("ROLLBACK TO SAVEPOINT a", true, true, false),
            ("ROLLBACK WORK TO a; COMMIT", true, false, false),
            ("PREPARE TRANSACTION 'x'", true, false, false),
            ("PREPARE s AS SELECT 1", true, true, false),
            ("COMMIT PREPARED 'x'", false, false, false),
            ("/* a; */ -- begin;\nEND", true, false, false),
            ("SELECT 'x; BEGIN; '; SELECT 1", false, false, false),
            ("SELECT E'\\'; BEGIN; '", false, false, false),
            ("SELECT \"a;COMMIT\" FROM t", true, true, false),
            ("DO $$ BEGIN PERFORM 1; COMMIT; END $$", true, true, false),
            ("DO $$ BEGIN NULL; END $$; COMMIT", true, false, false),
            ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END", true, true, false),
            ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT", true, false, false),
            ("CREATE PROCEDURE p() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'", true, true, false),
            ("SAVEPOINT begin", true, true, false),
            ("EXPLAIN SELECT 1", false, false, false),
            ("", true, true, false),
        ] {
            assert_eq!(behind(text, before), (open, another), "{text}");
        }
    }
}
