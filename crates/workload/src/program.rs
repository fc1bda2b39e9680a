//! What a kind of workload gives to be run: the steps of a transaction.

use crate::answer::Answer;
use crate::client::Statement;
use crate::error::RunError;
use crate::random::Random;
use crate::time::Nanos;

/// One client's transactions, one after another. Its host is a session, which draws their types, tries them again and accounts
/// for them.
pub trait Program {
    /// Begins a transaction of this script with these random values; with `again`, what it changed in the try before is
    /// undone first.
    fn begin(&mut self, script: u32, random: Random, again: bool);

    /// The next step; `reply` is what the statement before brought.
    fn step(&mut self, now: Nanos, reply: Reply<'_>) -> Step;

    /// The statement of the last [`Step::Send`].
    fn statement(&self) -> Statement<'_>;

    /// Counts of what was asked for since the first transaction, each with its name; nothing of kinds without such counts.
    fn inputs(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Why the last step was [`Step::Abort`], or where it ended.
    fn error(&self) -> &RunError;

    /// Notes that the script cannot go on, for [`Program::error`].
    fn fail(&mut self, message: &str);
}

/// What the statement before brought.
pub type Reply<'a> = Option<&'a Answer>;

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a statement.
    Send,
    /// Send the end of a pipeline's segment; with `wait`, take all answers before the next step.
    Sync {
        /// Whether the pipeline ends here.
        wait: bool,
    },
    /// Nothing to do before this time.
    WaitUntil(Nanos),
    /// The transaction is done.
    End,
    /// The transaction is done, and was rolled back because it was meant to be.
    EndRolledBack,
    /// The script cannot go on.
    Abort,
}
