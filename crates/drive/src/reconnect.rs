//! New connections for those that were lost, made on a thread of its own: a log-in blocks, and must not hold up the
//! clients that still have theirs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pgdyno_connection::{Fault, Server, Session, log_in};
use pgdyno_host as host;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Between two attempts. A server that starts is found within this, and one that is down is not worn out.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The longest interval, for a server that answers and refuses: each refusal is a process of it, and the interval doubles.
const RETRY_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// What a server refuses in the same way until somebody changes its roles, rights or databases: a run without them is none.
const FINAL: [&str; 2] = ["3D000", "42501"];
/// The class of a role that may not log in, or with another password.
const FINAL_CLASS: &str = "28";
/// What attempts are counted as where the server did not say why it refused, or is not there.
const UNREACHABLE: &str = "unreachable";

/// Attempts that failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures {
    /// By the server's SQLSTATE, the code of what this machine did not give, or `unreachable`.
    pub counts: BTreeMap<String, u64>,
    /// What the last one met.
    pub last: Option<String>,
}

impl Failures {
    /// Adds those of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(why, count)| *self.counts.entry(why).or_default() += count);
        self.last = other.last.or(self.last.take());
    }

    fn note(&mut self, fault: &Fault) {
        let why = match &fault.server_error {
            Some(error) => error.sqlstate.clone(),
            None if fault.absent || fault.code.is_empty() => UNREACHABLE.to_owned(),
            None => fault.code.clone().into_owned(),
        };
        *self.counts.entry(why).or_default() += 1;
        self.last = Some(fault.message.clone());
    }
}

/// A new session for a client; an error ends the run, and the thread.
type Made = Result<(usize, Session), Fault>;

/// The worker's end: asks for connections, and is woken when there is one.
pub(crate) struct Reconnect {
    ask: Sender<usize>,
    made: Receiver<Made>,
    wake: OwnedFd,
    failures: Arc<Mutex<Failures>>,
}

impl Reconnect {
    /// Starts the thread. It ends when this is dropped.
    pub(crate) fn start(to: &Server) -> Result<Self, Fault> {
        let refused =
            |error: io::Error| host::Fault::of_kernel("a thread that connects again cannot be started", &error);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| refused(error.into()))?;
        let bell = wake.try_clone().map_err(refused)?;
        let (ask, asked) = channel();
        let (give, made) = channel();
        let failures = Arc::new(Mutex::new(Failures::default()));
        let thread = Thread { to: to.clone(), asked, give, bell, failures: Arc::clone(&failures) };
        let body = move || thread.run();
        std::thread::Builder::new().name("reconnect".to_owned()).spawn(body).map_err(refused)?;
        Ok(Self { ask, made, wake, failures })
    }

    /// A client wants a new connection.
    pub(crate) fn ask(&self, client: usize) {
        // A thread that has ended has said why.
        let _ = self.ask.send(client);
    }

    /// A connection that was made since, or why there will be none.
    pub(crate) fn take(&self) -> Option<Made> {
        self.made.try_recv().ok()
    }

    /// The attempts that have failed until now.
    pub(crate) fn failures(&self) -> Failures {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the descriptor silent until the next connection.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

impl AsFd for Reconnect {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// What connects again.
struct Thread {
    to: Server,
    asked: Receiver<usize>,
    give: Sender<Made>,
    bell: OwnedFd,
    failures: Arc<Mutex<Failures>>,
}

impl Thread {
    fn run(self) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.serve()));
        if let Err(fault) = ended.unwrap_or_else(|panic| Err(host::Fault::of_panic(panic.as_ref()).into())) {
            self.give(Err(fault));
        }
    }

    /// Tries for the client that waits longest, again and again, until no client can ask any more.
    fn serve(&self) -> Result<(), Fault> {
        let (mut waiting, mut interval) = (VecDeque::new(), RETRY_INTERVAL);
        loop {
            if waiting.is_empty() {
                let Ok(client) = self.asked.recv() else { return Ok(()) };
                waiting.push_back(client);
            }
            waiting.extend(self.asked.try_iter());
            match log_in(&self.to) {
                Ok(session) => {
                    interval = RETRY_INTERVAL;
                    let client = waiting.pop_front().expect("a client waits");
                    if !self.give(Ok((client, session))) {
                        return Ok(());
                    }
                }
                Err(error) => {
                    let fault = error.into_fault(&self.to);
                    self.failures.lock().unwrap_or_else(PoisonError::into_inner).note(&fault);
                    if is_final(&fault) {
                        return Err(fault);
                    }
                    if !self.pause(interval, &mut waiting) {
                        return Ok(());
                    }
                    interval = if fault.absent { RETRY_INTERVAL } else { (2 * interval).min(RETRY_INTERVAL_MAX) };
                }
            }
        }
    }

    /// Waits for so long, and notes who asks meanwhile. False when no client can ask any more.
    fn pause(&self, interval: Duration, waiting: &mut VecDeque<usize>) -> bool {
        let until = Instant::now() + interval;
        loop {
            match self.asked.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(client) => waiting.push_back(client),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Hands it to the worker, and wakes it. False if there is no worker any more.
    fn give(&self, made: Made) -> bool {
        let is_taken = self.give.send(made).is_ok();
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        is_taken
    }
}

/// Whether the server would refuse every further attempt too.
fn is_final(fault: &Fault) -> bool {
    let Some(error) = &fault.server_error else { return false };
    error.sqlstate.starts_with(FINAL_CLASS) || FINAL.contains(&error.sqlstate.as_str())
}
