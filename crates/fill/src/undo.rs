//! Removing what was made of tables that could not all be made.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_connection::{Connection, Fault, Server};

/// Drops tables that are there already when something fails, so that a second try begins as the first did; with `around`, by
/// these statements, which also remove what the tables stand in. The failure is returned; when the tables cannot be dropped,
/// it says which are left.
pub(crate) fn undo(server: &Server, made: &[&str], around: Option<Vec<String>>, mut failure: Fault) -> Fault {
    let names = made.join(", ");
    let statements = match around {
        Some(statements) => statements,
        None if made.is_empty() => return failure,
        None => vec![format!("DROP TABLE IF EXISTS {names}")],
    };
    let dropped = Connection::open(server, &Arc::new(AtomicBool::new(false)))
        .and_then(|mut session| statements.iter().try_for_each(|sql| session.query(sql).map(drop)));
    if let Err(error) = dropped {
        let left = if names.is_empty() { "the schema of the tables" } else { &names };
        failure.remedy = format!("{}; and drop {left}, which is left: {error}", failure.remedy);
    }
    failure
}
