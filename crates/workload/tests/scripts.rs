//! What scripts do, judged by pgbench's behaviour: what is sent, what is computed, what is refused and where.

use crate::host::{self, Host, run};
use pgdyno_workload::*;

fn mix(text: &str) -> Workload {
    Mix::default().script("test.sql", text, 1).unwrap_or_else(|error| panic!("{error}")).build()
}

fn sent(text: &str) -> Vec<String> {
    run(&mix(text), Host::default(), 1).sent
}

fn value(expression: &str) -> String {
    sent(&format!("\\set v {expression}\nSELECT :v;")).remove(0).split_off("SELECT ".len())
}

fn trouble(expression: &str) -> String {
    let run = run(&mix(&format!("\\set v {expression}\nSELECT 1;")), Host::default(), 1);
    run.aborted.expect("it cannot go on").message
}

#[test]
fn the_built_in_scripts_send_what_pgbench_sends() {
    let workload = Mix::default().builtin(Builtin::TpcbLike, 1).define("scale", "1").build();
    let run = run(&workload, Host::default(), 1);
    let heads: Vec<&str> = run.sent.iter().map(|sql| &sql[..sql.len().min(24)]).collect();
    assert_eq!(
        heads,
        [
            "BEGIN",
            "UPDATE pgbench_accounts ",
            "SELECT abalance FROM pgb",
            "UPDATE pgbench_tellers S",
            "UPDATE pgbench_branches ",
            "INSERT INTO pgbench_hist",
            "END"
        ]
    );
    assert!(run.sent[4].ends_with("WHERE bid = 1"), "scale 1 has one branch: {}", run.sent[4]);
}

#[test]
fn built_in_keys_are_in_their_ranges_and_said_for_a_simulator() {
    let workload = Mix::default().builtin(Builtin::SimpleUpdate, 1).define("scale", "3").build();
    let run = run(&workload, Host::default(), 500);
    let keys: Vec<i64> =
        run.keys.iter().filter(|(table, _)| *table == "pgbench_accounts").map(|(_, key)| *key).collect();
    assert_eq!(keys.len(), 1000, "an update and a query in each transaction");
    assert!(keys.iter().all(|key| (1..=300_000).contains(key)));
    assert!(keys.iter().any(|key| *key > 250_000));
}

#[test]
fn conditions_choose_a_branch() {
    let script = "\\if :n > 2\nSELECT 'big';\n\\elif :n = 2\nSELECT 'two';\n\\else\nSELECT 'small';\n\\endif\n";
    for (n, expected) in [(3, "big"), (2, "two"), (1, "small")] {
        assert_eq!(sent(&format!("\\set n {n}\n{script}")), [format!("SELECT '{expected}'")]);
    }
    assert_eq!(sent("\\if 0\n\\if 1\nSELECT 1;\n\\endif\nSELECT 2;\n\\endif\nSELECT 3;"), ["SELECT 3"]);
    assert_eq!(sent("\\if NULL\nSELECT 1;\n\\endif\nSELECT 3;"), ["SELECT 3"]);
}

#[test]
fn commands_and_units_are_read_in_any_case() {
    assert_eq!(sent("\\SET n 3\n\\If :n > 2\nSELECT :n;\n\\ENDIF\n\\Sleep 1 MS\n"), ["SELECT 3"]);
}

#[test]
fn values_of_answers_become_variables() {
    let answers = Host::answering(&[("one", Some("41")), ("none", None)], 1);
    let script = "SELECT 1 AS one \\gset p_\n\\set next :p_one + 1\nSELECT :next, :p_none, :one;";
    assert_eq!(run(&mix(script), answers, 1).sent[1], "SELECT 42, NULL, :one");
    let answers = Host::answering(&[("one", Some("x'y"))], 2);
    assert_eq!(run(&mix("SELECT 1 \\aset\nSELECT :one;"), answers, 1).sent[1], "SELECT x'y");
    let answers = Host::answering(&[("one", Some("1"))], 2);
    let run = run(&mix("SELECT 1\n\\gset\nSELECT 2;"), answers, 1);
    assert_eq!(run.aborted.unwrap().to_string(), "test.sql:1:1: \\gset expects one row, and the statement gave 2");
}

#[test]
fn what_cannot_be_read_is_said_with_line_and_column() {
    let cases = [
        ("\\set a 1 +\n", 1, 11, "an expression is expected here"),
        ("SELECT 1;\n  \\set a nope(1)\n", 2, 10, "there is no function `nope`"),
        ("\\set a random(1)\n", 1, 8, "`random` takes 2 argument(s), and here are 1"),
        ("\\set a 1 2\n", 1, 10, "the expression is over here: remove what follows"),
        ("\\set é@ 1\n", 1, 6, "`é@` is no name of a variable: use letters, digits and underscores"),
        ("\\if 1\nSELECT 1;\n", 1, 1, "this \\if has no \\endif"),
        ("\\else\n", 1, 1, "this \\else has no \\if"),
        ("\\if 1\n\\else\n\\elif 1\n\\endif\n", 3, 1, "this \\elif comes after \\else"),
        ("\\gset\n", 1, 1, "\\gset must follow a statement"),
        ("\\sleep 10 hours\n", 1, 11, "`hours` is no unit of \\sleep: use us, ms or s"),
        ("\\nothing\n", 1, 1, "there is no command \\nothing"),
        ("SELECT 'a;\n", 1, 8, "this string is not closed"),
        ("\\set a 9223372036854775808\n", 1, 8, "this number does not fit into 64 bits: write it with a decimal point"),
        ("\\endif x\n", 1, 1, "this \\endif has no \\if"),
        ("\\set a CASE 1 END\n", 1, 13, "WHEN is expected behind CASE"),
    ];
    for (text, line, column, message) in cases {
        let error = script::compile("test.sql", text).expect_err(text);
        assert_eq!((error.at.line, error.at.column, error.message.as_str()), (line, column, message), "{text}");
    }
    for command in ["\\setshell a date", "\\shell date"] {
        let error = script::compile("test.sql", command).unwrap_err();
        assert!(error.message.contains("is refused: it would start a process"), "{error}");
    }
}

#[test]
fn what_cannot_be_computed_ends_the_client_with_a_reason() {
    assert_eq!(trouble("1 / 0"), "division by zero");
    assert_eq!(trouble("9223372036854775807 + 1"), "the result of + does not fit into 64 bits");
    assert_eq!(trouble("-9223372036854775808 / -1"), "the result of / does not fit into 64 bits");
    assert_eq!(trouble("random(2, 1)"), "the range from 2 to 1 is empty");
    assert_eq!(trouble("random_gaussian(1, 9, 1.9)"), "random_gaussian needs a parameter of at least 2");
    assert_eq!(trouble("random_zipfian(1, 9, 1.0)"), "random_zipfian needs a parameter from 1.001 to 1000");
    assert_eq!(trouble("random_exponential(1, 9, 0)"), "random_exponential needs a parameter above 0");
    assert_eq!(trouble(":nothing + 1"), "the variable `nothing` was never set");
    assert_eq!(trouble("1 and true"), "a whole number is no boolean: compare it with something");
}

#[test]
fn null_is_not_known() {
    for (expression, expected) in [
        ("null and false", "NULL"),
        ("null and true", "NULL"),
        ("null or true", "NULL"),
        ("null + 1", "NULL"),
        ("null is null", "true"),
        ("1 isnull", "false"),
        ("1 notnull", "true"),
        ("(1 = 1) is not false", "true"),
        ("case when null then 1 end", "NULL"),
        ("least(1, null)", "NULL"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn sleeping_is_waiting() {
    let run = run(&mix("\\sleep 20ms\n\\set n 3\n\\sleep :n us\nSELECT 1;"), Host::default(), 1);
    assert_eq!(run.finished[0].0, 20_003_000 + Host::STATEMENT_NS);
}

#[test]
fn a_pipeline_does_not_wait() {
    let workload = mix("\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\nSELECT 3;");
    assert!(workload.protocol(None).is_err());
    assert_eq!(workload.protocol(Some(Protocol::Extended)), Ok(Protocol::Extended));
    let run = run(&workload, Host::default(), 1);
    assert_eq!(run.sent, ["[SELECT 1", "-", "[SELECT 2", "]", "SELECT 3"]);
    for (text, message) in [
        ("\\endpipeline\nSELECT 1;", "no pipeline was begun: write \\startpipeline first"),
        ("\\startpipeline\nSELECT 1;", "the script ends inside a pipeline: add \\endpipeline"),
        ("\\startpipeline\nSELECT 1 \\gset", "\\gset and \\aset have no answer inside a pipeline: end it first"),
    ] {
        assert_eq!(host::run(&mix(text), Host::default(), 1).aborted.unwrap().message, message);
    }
}

#[test]
fn a_script_that_ends_inside_a_transaction_is_wrong() {
    let run = run(&mix("BEGIN;\nSELECT 1;\n"), Host::default(), 1);
    assert_eq!(
        run.aborted.unwrap().to_string(),
        "test.sql:2:10: the script ends inside a transaction: add END, COMMIT or ROLLBACK"
    );
}

#[test]
fn weights_are_frequencies() {
    let workload = Mix::default().builtin(Builtin::SelectOnly, 3).script("b", "SELECT 2;", 1).unwrap().build();
    let run = run(&workload, Host::default(), 10_000);
    let first = run.finished.iter().filter(|(_, transaction)| transaction.script == 0).count() as f64;
    // Four standard deviations of a binomial law: 4·√(10000·3/16) = 173.
    assert!((first - 7_500.0).abs() < 173.0, "{first}");
}

#[test]
fn parameters_derive_from_seed_client_and_ordinal_alone() {
    let workload = Mix::default().builtin(Builtin::TpcbLike, 1).define("scale", "10").build();
    let smooth = run(&workload, Host::default(), 50).sent;
    assert_eq!(smooth, run(&workload, Host::default(), 50).sent);
    assert_ne!(smooth, host::run_as(&workload, Host::default(), 50, 1).sent, "another client");
    // A deadlock in the fourth transaction, tried again, changes nothing before and after it.
    let stumbling = run(&workload, Host::failing(24, SqlState::DEADLOCK_DETECTED), 50);
    assert_eq!(stumbling.finished[3].1.tries, 2);
    let wanted: Vec<&String> = smooth[..25].iter().collect();
    assert_eq!(stumbling.sent[..25].iter().collect::<Vec<_>>(), wanted);
    assert_eq!(stumbling.sent[25], "ROLLBACK");
    assert_eq!(stumbling.sent[26..], smooth[21..], "the transaction again with its values, and all that follow");
}

#[test]
fn values_that_real_pgbench_gave() {
    let table = include_str!("pgbench_values.tsv");
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('\t').expect("two columns"))
        .collect();
    assert!(rows.len() > 90, "{}", rows.len());
    let differ: Vec<_> = rows.iter().filter(|(expression, expected)| value(expression) != *expected).collect();
    assert!(differ.is_empty(), "{differ:?}");
}
