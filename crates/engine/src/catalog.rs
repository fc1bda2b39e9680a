//! `catalog`: many questions to the catalogue in one process, one JSON document a line, answered in the same order.

use std::io::{self, BufRead, Write};

use pgdyno_catalog::Need;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// One line of standard input, such as `{"resolve": "gp3:iops=6000"}`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    /// What a volume or an array is: limits, size, price.
    Resolve(String),
    /// The cheapest volume of a type that carries a need without credits.
    Cheapest(Need),
    /// Every volume type.
    VolumeTypes {},
    /// Every instance type.
    InstanceTypes {},
    /// What snapshots cost, and what a policy of them may say.
    Snapshots {},
}

/// Answers every line until the input ends: `{"answer": ...}`, or `{"error": {"message", "remedy"}}` for that line alone.
///
/// An answer is written before the next line is read, so a client may wait for each, or send several and then read.
pub(crate) fn serve(input: impl BufRead, mut out: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let document = match serde_json::from_str(&line?) {
            Ok(question) => answer(question),
            Err(error) => Err(Failure::new(
                format!("catalog cannot read the question: {error}"),
                "write one JSON document a line, such as {\"resolve\": \"gp3\"}".to_owned(),
            )),
        };
        let document = document.map_or_else(|failure| failure.document(), |answer| json!({"answer": answer}));
        writeln!(out, "{document}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(question: Question) -> Result<Value, Failure> {
    Ok(match question {
        Question::Resolve(spec) => json!(pgdyno_emulate::resolve(&spec)?),
        Question::Cheapest(need) => json!(pgdyno_catalog::cheapest(&need)?),
        Question::VolumeTypes {} => json!(pgdyno_catalog::types()?),
        Question::InstanceTypes {} => json!(pgdyno_catalog::instance_types(None)?),
        Question::Snapshots {} => json!(pgdyno_catalog::snapshots()?),
    })
}
