//! Removing what was made of tables that could not all be made.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_connection::{Connection, Fault, Server};

/// Drops tables that are there already when something fails, so that a second try begins as the first did. The failure
/// is returned; when the tables cannot be dropped, it says which are left.
pub(crate) fn undo(server: &Server, made: &[&str], mut failure: Fault) -> Fault {
    if made.is_empty() {
        return failure;
    }
    let names = made.join(", ");
    let dropped = Connection::open(server, &Arc::new(AtomicBool::new(false)))
        .and_then(|mut session| session.query(&format!("DROP TABLE IF EXISTS {names}")));
    if let Err(error) = dropped {
        failure.remedy = format!("{}; and drop {names}, which is left: {error}", failure.remedy);
    }
    failure
}
