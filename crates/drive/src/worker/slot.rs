//! A client with its session, and what it waits for.

use pgdyno_workload::{Client, Outcome, StatementId};

use crate::link::Link;

/// What a client of this thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Its turn, or a time.
    Time,
    /// The server's answer to this statement (or to a pipeline), since then.
    Answer(Option<StatementId>, u64),
    /// A new connection, since then.
    Connection(u64),
    /// Nothing any more.
    Nothing,
}

/// A client with its session. One that needs no session never has one.
pub(crate) struct Slot {
    pub program: Box<dyn Client + Send>,
    pub link: Option<Link>,
    pub waits: Waits,
    /// The session went away while the client waited for a time in the middle of a transaction.
    pub interrupted: bool,
    pub watched_for_writing: bool,
}

impl Slot {
    pub(crate) fn new(program: Box<dyn Client + Send>, link: Option<Link>) -> Self {
        Self { program, link, waits: Waits::Time, interrupted: false, watched_for_writing: false }
    }

    /// Whether a client that is at work has no session, where clients have them.
    pub(crate) fn is_disconnected(&self, connects: bool) -> bool {
        connects && self.link.is_none() && self.waits != Waits::Nothing
    }
}

/// What a client is told.
pub(crate) enum What {
    Ready,
    Answered,
    Lost,
}

impl What {
    pub(crate) fn outcome(self, link: Option<&mut Link>) -> Outcome<'_> {
        match (self, link) {
            (Self::Ready, _) => Outcome::Ready,
            (Self::Lost, _) | (Self::Answered, None) => Outcome::Lost,
            (Self::Answered, Some(link)) => match link.failure.take() {
                Some(sqlstate) => Outcome::Failed { sqlstate, status: link.status },
                None => Outcome::Succeeded { status: link.status, answer: link.kept() },
            },
        }
    }
}
