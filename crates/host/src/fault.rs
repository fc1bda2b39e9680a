//! The error of a command: what happened and what to do.

use std::any::Any;
use std::borrow::Cow;
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

/// A condition that the user can do something about.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do.
    pub remedy: String,
    /// The machine lacks something or does not work as it should; else the request is at fault.
    pub of_host: bool,
    /// A stable name of the error, from the largest part to the smallest (`capture.prefix.unknown`); empty where it has none.
    pub code: Cow<'static, str>,
    /// What a program may want to know of it: an object, or null.
    pub data: Value,
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// An error of the request.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy, of_host: false, code: Cow::Borrowed(""), data: Value::Null }
    }

    /// The same error with a stable name, and what a program may want to know of it.
    #[must_use]
    pub fn coded(self, code: &'static str, data: Value) -> Self {
        Self { code: code.into(), data, ..self }
    }

    /// An error of the machine.
    pub fn of_host(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { of_host: true, ..Self::new(message, remedy) }
    }

    /// What the kernel did not give, as `what` says: a thread, a descriptor, memory. The code is `host.threads`,
    /// `host.descriptors`, `host.memory`, or `host.kernel` for all else; the data are the number of the error and this process's
    /// limit, where there is one.
    pub fn of_kernel(what: &str, error: &io::Error) -> Self {
        let limit = |of| getrlimit(of).current;
        let (code, limit, remedy) = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => (
                "host.descriptors",
                limit(Resource::Nofile),
                "allow this process more open files: raise `ulimit -n`, or ask for fewer connections",
            ),
            Some(Errno::NFILE) => {
                ("host.descriptors", None, "the machine has no more open files: raise `sysctl fs.file-max`")
            }
            Some(Errno::AGAIN) => (
                "host.threads",
                limit(Resource::Nproc),
                "allow more threads: raise `ulimit -u`, pids.max of the control group or `sysctl kernel.threads-max`, or ask for \
                 fewer",
            ),
            Some(Errno::NOMEM | Errno::NOBUFS) => {
                ("host.memory", limit(Resource::As), "free some memory, raise `ulimit -v`, or ask for less at a time")
            }
            _ => ("host.kernel", None, "look at the kernel's messages: `dmesg`"),
        };
        let data = json!({"errno": error.raw_os_error(), "limit": limit});
        Self::of_host(format!("{what}: {error}"), remedy).coded(code, data)
    }

    /// A panic of the calling thread. Its code is `engine.panic`, its data the thread and the message.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let (message, thread) = (message_of(panic), thread::current());
        let thread = thread.name().unwrap_or("unnamed");
        Self::new(format!("a thread ({thread}) ended unexpectedly: {message}"), "this is a bug in pgdyno: report it")
            .coded("engine.panic", json!({"thread": thread, "message": message}))
    }
}

/// What a panic said.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it said nothing".to_owned())
}

/// Adds to an error of the operating system what was tried, and a remedy.
pub trait Context<T> {
    /// The error becomes `tried: error`.
    ///
    /// # Errors
    /// The same as before, as a [`Fault`].
    fn context(self, tried: impl FnOnce() -> String, remedy: &str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, tried: impl FnOnce() -> String, remedy: &str) -> Result<T> {
        self.map_err(|error| Fault::new(format!("{}: {}", tried(), error.into()), remedy))
    }
}
