//! New connections for those that were lost, made on a thread of its own: a log-in blocks, and must not hold up the
//! clients that still have theirs.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use pgdyno_connection::Fault;
use pgdyno_connection::Server;
use pgdyno_connection::{Session, log_in};

/// Between two tries. A server that starts is found within this, and one that is down is not worn out.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The worker's end: asks for connections, and is woken when there is one.
pub(crate) struct Reconnect {
    ask: Sender<usize>,
    made: Receiver<(usize, Session)>,
    wake: OwnedFd,
}

impl Reconnect {
    /// Starts the thread. It ends when this is dropped.
    pub(crate) fn start(to: &Server) -> Result<Self, Fault> {
        let refused = |error: std::io::Error| {
            Fault::new(format!("the kernel refused a thread or a descriptor: {error}"), "look at the limits")
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| refused(error.into()))?;
        let bell = wake.try_clone().map_err(refused)?;
        let (ask, asked) = channel();
        let (give, made) = channel();
        let to = to.clone();
        let body = move || serve(&to, &asked, &give, &bell);
        std::thread::Builder::new().name("reconnect".to_owned()).spawn(body).map_err(refused)?;
        Ok(Self { ask, made, wake })
    }

    /// A client wants a new connection.
    pub(crate) fn ask(&self, client: usize) {
        // The thread ends after this does.
        let _ = self.ask.send(client);
    }

    /// A connection that was made since.
    pub(crate) fn take(&self) -> Option<(usize, Session)> {
        self.made.try_recv().ok()
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

/// Tries for whoever waits longest, again and again, until nobody can ask any more.
fn serve(to: &Server, asked: &Receiver<usize>, give: &Sender<(usize, Session)>, bell: &OwnedFd) {
    let mut waiting = std::collections::VecDeque::new();
    loop {
        if waiting.is_empty() {
            let Ok(client) = asked.recv() else { return };
            waiting.push_back(client);
        }
        waiting.extend(asked.try_iter());
        match log_in(to) {
            Ok(session) => {
                let client = waiting.pop_front().expect("somebody waits");
                if give.send((client, session)).is_err() {
                    return;
                }
                let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
            }
            Err(_) => match asked.recv_timeout(RETRY_INTERVAL) {
                Ok(client) => waiting.push_back(client),
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return,
            },
        }
    }
}
