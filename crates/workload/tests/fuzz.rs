//! Scripts of any kind: they are read or refused at a place that is there, and what was read runs to its end.

use crate::host::{Host, run};
use pgdyno_workload::*;
use proptest::prelude::*;

/// Pieces of the language, so that most scripts are nearly right.
const WORDS: [&str; 44] = [
    "\\set a ",
    "\\set b ",
    ":a",
    ":b",
    "1",
    "0",
    "-9223372036854775808",
    "2.5",
    "+",
    "-",
    "*",
    "/",
    "%",
    "(",
    ")",
    ",",
    "random",
    "permute",
    "hash",
    "least",
    "case ",
    "when ",
    "then ",
    "else ",
    "end ",
    " and ",
    " or ",
    " not ",
    " is ",
    "null",
    "true",
    "~",
    "<<",
    "\n",
    ";\n",
    "SELECT ",
    "'",
    "$$",
    "--",
    "/*",
    "\\if ",
    "\\else\n",
    "\\endif\n",
    "\\gset\n",
];

fn check(text: &str) -> Result<(), TestCaseError> {
    match Mix::default().script("fuzz.sql", text, 1) {
        Err(error) => {
            let line = text.split('\n').nth(error.at.line as usize - 1);
            let line = line.ok_or_else(|| TestCaseError::fail(format!("no such line: {error}")))?;
            prop_assert!((1..=line.chars().count() + 1).contains(&(error.at.column as usize)), "{error} in {line:?}");
            prop_assert!(!error.message.is_empty());
        }
        Ok(mix) => {
            let run = run(&mix.build(), Host::default(), 2);
            prop_assert!(run.aborted.is_some() || run.finished.len() == 2);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn nearly_right_scripts_are_read_or_refused(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40)) {
        check(&words.concat())?;
    }

    #[test]
    fn any_expression_is_read_or_refused(words in prop::collection::vec(prop::sample::select(&WORDS[2..33]), 0..25)) {
        check(&format!("\\set a {}\nSELECT :a;", words.concat()))?;
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    for text in [format!("\\set a {}", "(".repeat(100_000)), format!("\\set a {}1", "- ".repeat(100_000))] {
        let error = script::compile("deep.sql", &text).unwrap_err();
        assert_eq!(error.message, "the expression is nested too deeply");
    }
    for link in ["not ", "1 + ", "1 or ", "1 << "] {
        let sentence = "the expression is too long: compute it in several steps";
        let error = script::compile("long.sql", &format!("\\set a {}1", link.repeat(100_000))).unwrap_err();
        assert_eq!(error.message, sentence);
        let text = format!("\\set a {}1\nSELECT :a;", link.repeat(400));
        let run = run(&Mix::default().script("long.sql", &text, 1).unwrap().build(), Host::default(), 1);
        assert!(run.aborted.is_some() || run.sent.len() == 1);
    }
}
