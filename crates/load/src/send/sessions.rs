//! The threads of a load.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use pgdyno_connection::Connection;
use pgdyno_host as host;

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
            let planner = Arc::clone(shared);
            let begun = spawn("plan", move || guarded(&planner, || splitter::run(&planner)));
            if let Err(error) = begun {
                // Those that have begun end with it.
                shared.fail(error.clone());
                return Err(error);
            }
        }
        Ok(Self { shared: Arc::clone(shared), tell: tell.clone(), threads: Vec::new(), running: 0 })
    }

    /// Opens a session and lets it work.
    pub(crate) fn add(&mut self) -> Result<(), LoadError> {
        let session = Connection::open(&self.shared.spec.server, &self.shared.stop)?;
        let (shared, number, bell) = (Arc::clone(&self.shared), self.threads.len(), Bell(self.tell.clone()));
        self.threads.push(spawn("load", move || {
            let _bell = bell;
            guarded(&shared, || worker::run(&shared, number, session));
        })?);
        self.running += 1;
        Ok(())
    }

    /// Joins the session threads.
    pub(crate) fn join(self) {
        for thread in self.threads {
            // Its panic was noted.
            let _ = thread.join();
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

/// Ends the load where a thread of it panics.
fn guarded(shared: &Shared, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        shared.fail(host::Fault::of_panic(panic.as_ref()).into());
    }
}

/// A thread of its own.
pub(crate) fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LoadError> {
    let spawned = Builder::new().name(name.to_owned()).spawn(what);
    spawned.map_err(|error| host::Fault::of_kernel("a thread cannot be started", &error).into())
}
