//! The threads of a load.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use pgdyno_connection::Connection;

use crate::error::LoadError;
use crate::send::worker;
use crate::shared::Shared;
use crate::split::splitter;

/// A message to the main thread.
pub(crate) enum Event {
    /// A signal came.
    Stop,
    /// A session has ended.
    Ended,
}

/// The threads of a load: planners and sessions.
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    tell: Sender<Event>,
    threads: Vec<JoinHandle<()>>,
    /// Sessions that have not ended.
    pub running: usize,
}

impl Sessions {
    /// Starts the planners. They are never waited for: one may be in a read that no order to stop ends.
    pub(crate) fn start(shared: &Arc<Shared>, tell: &Sender<Event>) -> Result<Self, LoadError> {
        for _ in 0..shared.planners {
            let shared = Arc::clone(shared);
            spawn("plan", move || splitter::run(&shared))?;
        }
        Ok(Self { shared: Arc::clone(shared), tell: tell.clone(), threads: Vec::new(), running: 0 })
    }

    /// Opens a session and lets it work.
    pub(crate) fn add(&mut self) -> Result<(), LoadError> {
        let session = Connection::open(&self.shared.spec.server, &self.shared.stop)?;
        let (shared, number, bell) = (Arc::clone(&self.shared), self.threads.len(), Bell(self.tell.clone()));
        self.threads.push(spawn("load", move || {
            let _bell = bell;
            worker::run(&shared, number, session);
        })?);
        self.running += 1;
        Ok(())
    }

    /// Joins the session threads.
    pub(crate) fn join(self) {
        for thread in self.threads {
            if thread.join().is_err() {
                let what = "a session of the loader ended unexpectedly";
                self.shared.fail(LoadError::new(what, "this is a bug in pgdyno"));
            }
        }
    }
}

/// Tells that a session has ended, however it does.
struct Bell(Sender<Event>);

impl Drop for Bell {
    fn drop(&mut self) {
        // The main thread lives as long as the sessions.
        let _ = self.0.send(Event::Ended);
    }
}

/// A thread of its own.
pub(crate) fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LoadError> {
    Builder::new().name(name.to_owned()).spawn(what).map_err(|error| {
        LoadError::new(format!("cannot start a thread: {error}"), "raise the limits on processes and memory")
    })
}
