//! What blocks, as logging in does: done by threads of their own, so that nobody waits but who asked for it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pgdyno_connection::Fault;

/// So many are done at a time. A log-in takes milliseconds of the server, and seconds where nothing answers.
const THREADS_MAX: usize = 16;
/// Stack of a thread: TLS needs most of it.
const STACK_BYTES: usize = 256 << 10;

type Errand = Box<dyn FnOnce() + Send>;

/// Where they are asked for.
#[derive(Clone)]
pub(crate) struct Errands(Sender<Errand>);

impl Errands {
    /// Begins threads for so many who may ask at a time. They end when nobody can ask any more.
    pub(crate) fn start(askers: usize) -> Result<Self, Fault> {
        let (ask, asked) = channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..askers.clamp(1, THREADS_MAX) {
            let asked = Arc::clone(&asked);
            let begun = thread::Builder::new().name("errands".to_owned()).stack_size(STACK_BYTES);
            begun.spawn(move || serve(&asked)).map_err(|error| no_thread(&error))?;
        }
        Ok(Self(ask))
    }

    /// Has something done, behind what was asked for before.
    pub(crate) fn send(&self, errand: impl FnOnce() + Send + 'static) {
        // The threads end after this does.
        let _ = self.0.send(Box::new(errand));
    }
}

fn serve(asked: &Mutex<Receiver<Errand>>) {
    loop {
        let errand = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(errand) = errand else { return };
        errand();
    }
}

/// The machine gives no thread.
pub(crate) fn no_thread(error: &std::io::Error) -> Fault {
    Fault::new(format!("a thread cannot be begun: {error}"), "raise the limit of processes")
}

#[cfg(test)]
mod tests {
    use super::*;

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
