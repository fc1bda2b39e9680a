//! The open connections of a socket, and how many there may be: one more ends the one that has been idle for longest.

use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pgdyno_clock::monotonic_ns;
use pgdyno_host::Fault;
use serde_json::{Value, json};

use crate::ask::{error_document, is_awaited, send};
use crate::descriptors;

/// Connections of a socket: more than any number of commands and experiments that ask at the same time.
const MOST: usize = 64;
/// A request has a specification or a list of paths; a longer line is none.
const REQUEST_BYTES: u64 = 1 << 20;
/// An asker that reads no answer is not waited for longer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that no thread could be started for is served by the one that accepts, which others wait for.
const INLINE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the end of another connection is waited for.
const ROOM_TIMEOUT: Duration = Duration::from_millis(500);

/// One open connection.
#[derive(Debug)]
pub(crate) struct Conversation {
    stream: UnixStream,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When it was answered last; `None` while a request of it is worked on.
    idle_since: Option<u64>,
}

impl Conversation {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `answer` with each line until there is none, one is too long, or `answer` says `false`.
    pub(crate) fn each_line(&self, mut answer: impl FnMut(&[u8]) -> bool) {
        let mut reader = BufReader::new(&self.stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader).take(REQUEST_BYTES).read_until(b'\n', &mut line);
            if read.is_err() || line.is_empty() {
                return;
            }
            if line.last() != Some(&b'\n') && line.len() as u64 == REQUEST_BYTES {
                let _ = send(&self.stream, &error_document(&too_long()));
                return;
            }
            self.state().idle_since = None;
            if !answer(&line) {
                return;
            }
        }
    }

    /// Answers its request: from here on it is idle.
    pub(crate) fn answer(&self, document: &Value) -> io::Result<()> {
        let sent = send(&self.stream, document);
        self.state().idle_since = Some(monotonic_ns());
        sent
    }

    /// Whether the asking process still waits for the answer.
    pub(crate) fn is_awaited(&self) -> bool {
        is_awaited(&self.stream)
    }
}

fn too_long() -> Fault {
    Fault::new(format!("a request of more than {REQUEST_BYTES} bytes is not read"), "ask with one short JSON line")
        .coded("volume.request.too_long", json!({"most_bytes": REQUEST_BYTES}))
}

/// The open connections of one socket.
#[derive(Debug, Default)]
struct Conversations {
    open: Mutex<Vec<Arc<Conversation>>>,
    ended: Condvar,
}

impl Conversations {
    fn open(&self) -> MutexGuard<'_, Vec<Arc<Conversation>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, conversation: Arc<Conversation>) {
        let mut open = self.open();
        open.retain(|other| !Arc::ptr_eq(other, &conversation));
        // Its descriptor is free before anybody hears of it.
        drop(conversation);
        drop(open);
        self.ended.notify_all();
    }

    /// Ends the connection that has been idle for longest, and waits until its thread has let go of it.
    fn make_room(&self) {
        let open = self.open();
        let idle = open.iter().filter_map(|one| Some((one.state().idle_since?, one)));
        if let Some((_, oldest)) = idle.min_by_key(|(since, _)| *since) {
            let _ = oldest.stream.shutdown(Shutdown::Both);
        }
        let before = open.len();
        drop(self.ended.wait_timeout_while(open, ROOM_TIMEOUT, |open| open.len() >= before));
    }
}

/// Accepts connections until `closing`, and hands each to `talk` on a thread of its own. Nothing that the host refuses ends it.
pub(crate) fn serve(
    listener: &UnixListener,
    closing: &AtomicBool,
    talk: impl Fn(&Arc<Conversation>) + Clone + Send + 'static,
) {
    let all = Arc::new(Conversations::default());
    while !closing.load(Ordering::Acquire) {
        let accepted = match listener.accept() {
            Err(error) if descriptors::are_used_up(&error) => descriptors::lend(|| listener.accept()),
            other => other,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // What is in the queue stays there: without a pause this would turn round at full speed.
                if error.kind() != io::ErrorKind::Interrupted {
                    all.make_room();
                    std::thread::sleep(Duration::from_millis(10));
                }
                continue;
            }
        };
        if closing.load(Ordering::Acquire) {
            return;
        }
        if all.open().len() >= MOST || !descriptors::fill() {
            all.make_room();
        }
        if all.open().len() >= MOST || !descriptors::fill() {
            refuse(stream);
            descriptors::fill();
            continue;
        }
        let _ = stream.set_write_timeout(Some(WRITE_TIMEOUT));
        let state = Mutex::new(State { idle_since: Some(monotonic_ns()) });
        let conversation = Arc::new(Conversation { stream, state });
        all.open().push(conversation.clone());
        begin(&all, conversation, talk.clone());
    }
}

fn refuse(stream: UnixStream) {
    let busy = Fault::of_host("the volume's daemon has no room for another connection", "try again in a moment")
        .coded("volume.daemon.busy", json!({"connections": MOST}));
    let _ = stream.set_write_timeout(Some(INLINE_TIMEOUT));
    let _ = send(&stream, &error_document(&busy));
}

fn begin(
    all: &Arc<Conversations>,
    conversation: Arc<Conversation>,
    talk: impl Fn(&Arc<Conversation>) + Clone + Send + 'static,
) {
    let (others, theirs, inline) = (all.clone(), conversation.clone(), talk.clone());
    let run = move || {
        talk(&theirs);
        others.end(theirs);
    };
    if std::thread::Builder::new().name("control".to_owned()).spawn(run).is_err() {
        let _ = conversation.stream.set_read_timeout(Some(INLINE_TIMEOUT));
        inline(&conversation);
        all.end(conversation);
    }
}
