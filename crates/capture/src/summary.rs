//! What a capture comes to, without values unless they are asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{Call, Ending, Protocol, SessionFacts};
use crate::error::CaptureError;
use crate::file::CaptureFile;

/// Texts whose shapes are remembered.
const SHAPES_MAX: usize = 10_000;
/// Of the rows of a COPY so many bytes are shown, with the values.
const ROWS_SHOWN_BYTES: usize = 4096;
/// Parts of the captured time in which the load is told.
const PARTS: i64 = 60;

/// What to show.
#[derive(Debug, Clone, Deserialize)]
pub struct ShowSpec {
    /// The capture.
    pub capture: PathBuf,
    /// Show texts and values: of each statement the first, of a session all.
    #[serde(default)]
    pub values: bool,
    /// The statements of this session, by its number from 1, instead of the whole capture.
    pub session: Option<usize>,
}

/// A statement by its shape.
#[derive(Default, Serialize)]
struct Statement {
    shape: String,
    calls: u64,
    failed: u64,
    /// Of those whose duration is known.
    timed: u64,
    total_us: u64,
    max_us: u64,
    /// The first text and its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<Value>,
}

/// What statements come to, added up.
struct Tally {
    values: bool,
    statements: HashMap<String, Statement>,
    /// Shapes of texts that come again; those with values in them would fill the memory.
    shapes: HashMap<String, String>,
    protocols: BTreeMap<&'static str, u64>,
    errors: BTreeMap<String, u64>,
    seconds: BTreeMap<i64, u64>,
}

impl Tally {
    fn new(values: bool) -> Self {
        Self {
            values,
            statements: HashMap::new(),
            shapes: HashMap::new(),
            protocols: BTreeMap::new(),
            errors: BTreeMap::new(),
            seconds: BTreeMap::new(),
        }
    }

    fn add(&mut self, call: &Call) {
        *self.seconds.entry(call.due_us.div_euclid(1_000_000)).or_default() += 1;
        *self.protocols.entry(name(call.protocol)).or_default() += 1;
        let shape = match self.shapes.get(&call.text) {
            Some(shape) => shape.clone(),
            None => {
                let shape = call.shape();
                if self.shapes.len() < SHAPES_MAX {
                    self.shapes.insert(call.text.clone(), shape.clone());
                }
                shape
            }
        };
        let values = self.values;
        let found = self.statements.entry(shape.clone()).or_insert_with(|| Statement {
            shape,
            example: values.then(|| json!({"text": call.text, "values": call.values})),
            ..Statement::default()
        });
        found.calls += 1;
        match call.ending {
            Ending::Unknown => (),
            Ending::Done(us) => {
                found.timed += 1;
                found.total_us = found.total_us.saturating_add(us);
                found.max_us = found.max_us.max(us);
            }
            Ending::Failed(state) => {
                found.failed += 1;
                *self.errors.entry(String::from_utf8_lossy(&state).into_owned()).or_default() += 1;
            }
        }
    }

    /// The statements, those first that took the most time.
    fn statements(&mut self) -> Vec<Statement> {
        let mut found: Vec<Statement> = std::mem::take(&mut self.statements).into_values().collect();
        found.sort_by(|one, other| {
            (other.total_us, other.calls, &one.shape).cmp(&(one.total_us, one.calls, &other.shape))
        });
        found
    }
}

/// Reads a capture and says what is in it.
///
/// # Errors
/// A file that is no capture, or damaged.
pub fn show(spec: &ShowSpec) -> Result<Value, CaptureError> {
    let mut file = CaptureFile::open(&spec.capture)?;
    if let Some(number) = spec.session {
        return of_session(&mut file, number, spec.values);
    }
    let contents = file.contents();
    let mut tally = Tally::new(spec.values);
    let mut transactions = 0_u64;
    for session in 0..contents.sessions.len() {
        let mut last = 0;
        file.calls(session, |call| {
            last = last.max(call.transaction);
            tally.add(call);
        })?;
        transactions += u64::from(last);
    }
    let names = |of: fn(&SessionFacts) -> &String| -> BTreeMap<String, u64> {
        let mut counted = BTreeMap::new();
        for session in &contents.sessions {
            *counted.entry(of(session).clone()).or_default() += session.calls;
        }
        counted
    };
    let mut places: BTreeMap<(&String, &String), u64> = BTreeMap::new();
    for session in &contents.sessions {
        *places.entry((&session.user, &session.database)).or_default() += session.calls;
    }
    let place = |((user, database), calls): ((&String, &String), u64)| json!({"user": user, "database": database, "calls": calls});
    Ok(json!({
        "places": places.into_iter().map(place).collect::<Vec<_>>(),
        "first_us": contents.account.first_us,
        "last_us": contents.account.last_us,
        "sessions": contents.sessions.len(),
        "sessions_at_once": at_once(&contents.sessions),
        "transactions": transactions,
        "calls": contents.account.calls,
        "protocols": tally.protocols,
        "errors": tally.errors,
        "users": names(|session| &session.user),
        "databases": names(|session| &session.database),
        "statements": tally.statements(),
        "calls_by_part": by_part(&tally.seconds),
        "account": contents.account,
        "reading": contents.account.left_out(contents.sessions.len()),
        "exposed": file.exposed,
    }))
}

/// A session and its statements in order.
fn of_session(file: &mut CaptureFile, number: usize, values: bool) -> Result<Value, CaptureError> {
    let sessions = file.contents().sessions;
    let Some(facts) = number.checked_sub(1).and_then(|index| sessions.get(index)) else {
        return Err(CaptureError::new(
            format!("the capture has no session {number}"),
            format!("name one of 1 to {}", sessions.len()),
        ));
    };
    let mut calls = Vec::new();
    let mut copied = file.another()?;
    let mut damaged = None;
    file.calls(number - 1, |call| {
        let (us, error) = match call.ending {
            Ending::Unknown => (None, None),
            Ending::Done(us) => (Some(us), None),
            Ending::Failed(state) => (None, Some(String::from_utf8_lossy(&state).into_owned())),
        };
        let mut said = json!({
            "due_us": call.due_us,
            "transaction": call.transaction,
            "protocol": name(call.protocol),
            "us": us,
            "error": error,
            "shape": call.shape(),
            "without_values": call.without_values,
            "cut": call.cut,
        });
        if let Some(parts) = &call.rows {
            match parts.first().filter(|_| values).map(|at| copied.rows(*at)).transpose() {
                Ok(rows) => said["rows"] = json!(rows.map(|rows| beginning(&rows))),
                Err(error) => damaged = Some(error),
            }
        }
        if values {
            said["text"] = json!(call.text);
            said["values"] = json!(call.values);
            if !call.answer.is_empty() {
                said["answer"] = json!(call.answer);
            }
        }
        calls.push(said);
    })?;
    damaged.map_or_else(|| Ok(json!({"session": facts, "calls": calls})), Err)
}

/// The first of the rows of a COPY.
fn beginning(rows: &[u8]) -> String {
    String::from_utf8_lossy(&rows[..rows.len().min(ROWS_SHOWN_BYTES)]).into_owned()
}

fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Text => "text",
        Protocol::Unnamed => "unnamed",
        Protocol::Named => "named",
    }
}

/// The most sessions that were open at a time.
fn at_once(sessions: &[SessionFacts]) -> usize {
    let ends: BTreeSet<(i64, i8, usize)> = sessions
        .iter()
        .enumerate()
        // One that begins when another ends takes its place.
        .flat_map(|(number, session)| {
            [(session.begin_us, 1, number), (session.end_us.max(session.begin_us + 1), 0, number)]
        })
        .collect();
    let (mut now, mut most) = (0_usize, 0);
    for (_, begins, _) in ends {
        if begins == 1 {
            now += 1;
            most = most.max(now);
        } else {
            now -= 1;
        }
    }
    most
}

/// Statements that arrived in each part of the time: whole seconds, as many as make at most 60 parts.
fn by_part(seconds: &BTreeMap<i64, u64>) -> Value {
    let (Some(first), Some(last)) = (seconds.keys().next(), seconds.keys().next_back()) else { return Value::Null };
    let each = (last - first) / PARTS + 1;
    let mut parts = vec![0_u64; usize::try_from((last - first) / each).unwrap_or(0) + 1];
    for (second, count) in seconds {
        parts[usize::try_from((second - first) / each).unwrap_or(0)] += count;
    }
    json!({"part_s": each, "calls": parts})
}
