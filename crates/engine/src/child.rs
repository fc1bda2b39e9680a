//! What the engine is to the process that started it, and what a program is that it executes: a child that begins with no signal
//! blocked, and ends with its parent unless it is meant to outlive it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use pgdyno_signals::{Hangup, end_with_parent, reset, unblock};

use crate::failure::{Failure, HOST};

/// Unblocks this process's signals, and has it sent `signal` when its parent ends. What is ignored stays ignored, so that a
/// second Ctrl-C does not end an engine that undoes something. Without a parent it outlives the process that started it.
pub(crate) fn begin(parent: Option<u32>, signal: Signal) {
    unblock();
    let signal = match signal {
        Signal::Stop => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    if parent.is_some_and(|parent| end_with_parent(signal, parent).is_err()) {
        std::process::exit(1);
    }
}

/// How a process ends with its parent.
pub(crate) enum Signal {
    /// In order.
    Stop,
    /// At once: of a program that is executed it is not known whether it would end.
    Kill,
}

/// Becomes the program; returns only if there is none.
pub(crate) fn execute(command: &[OsString]) -> Failure {
    reset(Hangup::Kept);
    let (program, arguments) = command.split_first().expect("one word at least is required");
    let error = std::process::Command::new(program).args(arguments).exec();
    let remedy = "install it, or name it by its path".to_owned();
    Failure { exit: HOST, ..Failure::new(format!("cannot start {}: {error}", program.display()), remedy) }
}
