//! What blocks, as logging in does: done by threads of their own, so that nobody waits but who asked for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pgdyno_connection::Fault;
use pgdyno_host as host;

/// So many are done at a time. A log-in takes milliseconds of the server, and seconds where nothing answers.
const THREADS_MAX: usize = 16;
/// Stack of a thread: TLS needs most of it.
const STACK_BYTES: usize = 256 << 10;

type Errand = Box<dyn FnOnce() + Send>;

/// Where they are asked for.
#[derive(Clone)]
pub(crate) struct Errands {
    ask: Sender<Errand>,
    panic: Arc<Mutex<Option<Fault>>>,
}

impl Errands {
    /// Begins threads for so many who may ask at a time. They end when nobody can ask any more.
    pub(crate) fn start(askers: usize) -> Result<Self, Fault> {
        let (ask, asked) = channel();
        let (asked, panic) = (Arc::new(Mutex::new(asked)), Arc::default());
        for _ in 0..askers.clamp(1, THREADS_MAX) {
            let (asked, panic) = (Arc::clone(&asked), Arc::clone(&panic));
            let begun = thread::Builder::new().name("errands".to_owned()).stack_size(STACK_BYTES);
            begun.spawn(move || serve(&asked, &panic)).map_err(|error| no_thread(&error))?;
        }
        Ok(Self { ask, panic })
    }

    /// Has something done, behind what was asked for before.
    pub(crate) fn send(&self, errand: impl FnOnce() + Send + 'static) {
        // The threads end after this does.
        let _ = self.ask.send(Box::new(errand));
    }

    /// A panic of one of them, as an error, once; none was done behind it for whoever waits for it.
    pub(crate) fn panic(&self) -> Option<Fault> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn serve(asked: &Mutex<Receiver<Errand>>, failed: &Mutex<Option<Fault>>) {
    loop {
        let errand = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(errand) = errand else { return };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(errand)) {
            let fault = host::Fault::of_panic(panic.as_ref()).into();
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        }
    }
}

/// The machine gives no thread.
fn no_thread(error: &std::io::Error) -> Fault {
    host::Fault::of_kernel("a thread cannot be started", error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_and_ends_no_thread() {
        let errands = Errands::start(1).unwrap();
        let (tell, told) = channel();
        errands.send(|| panic!("no log-in"));
        errands.send(move || tell.send("behind it").unwrap());
        assert_eq!(told.recv(), Ok("behind it"));
        let fault = errands.panic().unwrap();
        assert_eq!((fault.code.as_ref(), fault.data["message"].as_str()), ("engine.panic", Some("no log-in")));
        assert!(errands.panic().is_none());
    }

    #[test]
    fn one_that_takes_long_holds_up_no_other() {
        let errands = Errands::start(2).unwrap();
        let (go, gone) = channel();
        let (tell, told) = channel();
        let telling = tell.clone();
        errands.send(move || {
            gone.recv().unwrap();
            telling.send("first").unwrap();
        });
        errands.send(move || tell.send("second").unwrap());
        assert_eq!(told.recv(), Ok("second"));
        go.send(()).unwrap();
        assert_eq!(told.recv(), Ok("first"));
    }
}
