//! Threads that do one piece of work together: all of them begin or none does, and none is left.
//!
//! Nobody begins before every thread exists. The first error wins and stops the others: an error that a thread returns, a panic
//! in one, a thread that the machine does not give. A barrier would wait for ever for a thread that is not there.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

use crate::fault::Fault;

/// What the threads of a crew and the one that follows them share.
pub struct Crew<'a, E> {
    halt: &'a (dyn Fn() + Sync),
    stops: AtomicBool,
    state: Mutex<State<E>>,
    changed: Condvar,
}

struct State<E> {
    /// Whether every thread exists.
    is_open: bool,
    /// Threads that have not ended.
    working: usize,
    /// Of those, the ones that wait for the others.
    met: usize,
    meetings: u64,
    failure: Option<E>,
}

/// Runs `body` on one thread for each of `seats`, and `follow` on this thread meanwhile; returns what they return once all threads
/// have ended. Threads are named `NAME 0`, `NAME 1`, ….
///
/// `halt` is called at each error: it wakes threads that wait for something outside of the crew, which then look at
/// [`Crew::stops`] or at a flag of their own. `follow` is called only once every thread exists, and can wait for the
/// threads by a channel whose senders are in `seats`, or by [`Crew::ended_within`].
///
/// # Errors
/// The first error, in time, of a thread, of `follow`, and of starting threads (`host.threads`). A panic is the error
/// `engine.panic` with its message.
pub fn crew<S, T, R, E>(
    name: &str,
    seats: Vec<S>,
    halt: &(dyn Fn() + Sync),
    body: impl Fn(&Crew<'_, E>, S) -> Result<T, E> + Sync,
    follow: impl FnOnce(&Crew<'_, E>) -> Result<R, E>,
) -> Result<(Vec<T>, R), E>
where
    S: Send,
    T: Send,
    E: From<Fault> + Send,
{
    spawning(name, seats, halt, body, follow, |_| Ok(()))
}

/// The same, where `grant` may refuse a thread: tests take the part of the kernel.
fn spawning<S, T, R, E>(
    name: &str,
    seats: Vec<S>,
    halt: &(dyn Fn() + Sync),
    body: impl Fn(&Crew<'_, E>, S) -> Result<T, E> + Sync,
    follow: impl FnOnce(&Crew<'_, E>) -> Result<R, E>,
    grant: impl Fn(usize) -> io::Result<()>,
) -> Result<(Vec<T>, R), E>
where
    S: Send,
    T: Send,
    E: From<Fault> + Send,
{
    let size = seats.len();
    let state = State { is_open: false, working: size, met: 0, meetings: 0, failure: None };
    let crew = Crew { halt, stops: AtomicBool::new(false), state: Mutex::new(state), changed: Condvar::new() };
    let (done, followed) = thread::scope(|scope| {
        let (crew, body) = (&crew, &body);
        let mut threads = Vec::with_capacity(size);
        for (number, seat) in seats.into_iter().enumerate() {
            let thread = Builder::new().name(format!("{name} {number}"));
            let work = move || crew.member(|| body(crew, seat));
            match grant(number).and_then(|()| thread.spawn_scoped(scope, work)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    crew.fail(Fault::of_kernel("a thread cannot be started", &error).into());
                    break;
                }
            }
        }
        let is_whole = threads.len() == size;
        crew.change(|state| state.is_open = true);
        let followed = if is_whole { crew.guarded(|| follow(crew)) } else { None };
        let done: Vec<T> = threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
        (done, followed)
    });
    match (crew.state.into_inner().unwrap_or_else(PoisonError::into_inner).failure, followed) {
        (Some(error), _) => Err(error),
        (None, Some(followed)) => Ok((done, followed)),
        (None, None) => unreachable!("what was not followed has failed"),
    }
}

impl<E: From<Fault>> Crew<'_, E> {
    /// Notes an error, unless there is one already, and stops all threads.
    pub fn fail(&self, error: E) {
        self.change(|state| {
            state.failure.get_or_insert(error);
            self.stops.store(true, Ordering::Relaxed);
        });
        (self.halt)();
    }

    /// Whether something has failed.
    pub fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Waits until every thread that has not ended waits here. False if they are to stop instead.
    pub fn meet(&self) -> bool {
        let mut state = self.lock();
        state.met += 1;
        let meeting = state.meetings;
        self.let_go(&mut state);
        while state.meetings == meeting && !self.stops() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !self.stops()
    }

    /// Waits for so long, or until all threads have ended. True if they have.
    pub fn ended_within(&self, limit: Duration) -> bool {
        let working = |state: &mut State<E>| state.working > 0;
        let (state, _) =
            self.changed.wait_timeout_while(self.lock(), limit, working).unwrap_or_else(PoisonError::into_inner);
        state.working == 0
    }

    /// One thread, from its beginning to its end.
    fn member<T>(&self, body: impl FnOnce() -> Result<T, E>) -> Option<T> {
        let mut state = self.lock();
        while !state.is_open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let done = if self.stops() { None } else { self.guarded(body) };
        self.change(|state| {
            state.working -= 1;
            self.let_go(state);
        });
        done
    }

    /// What `work` returns; nothing where it fails or panics, which is noted.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, E>) -> Option<T> {
        // What is shared with a thread that has panicked is looked at by none that goes on: all stop.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => self.fail(error),
            Err(panic) => self.fail(Fault::of_panic(panic.as_ref()).into()),
        }
        None
    }

    /// Ends the meeting if nobody is missing.
    fn let_go(&self, state: &mut State<E>) {
        if state.met > 0 && state.met == state.working {
            state.met = 0;
            state.meetings += 1;
            self.changed.notify_all();
        }
    }

    fn change(&self, how: impl FnOnce(&mut State<E>)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    use super::*;

    const NO_HALT: fn() = || ();

    fn refused(count: usize) -> impl Fn(usize) -> io::Result<()> {
        move |number| if number < count { Ok(()) } else { Err(io::Error::from_raw_os_error(11)) }
    }

    #[test]
    fn threads_have_names_and_their_results_are_in_order() {
        let name =
            |_: &Crew<'_, Fault>, seat: usize| Ok((seat, thread::current().name().unwrap_or_default().to_owned()));
        let (found, followed) = crew("count", vec![7, 8], &NO_HALT, name, |_| Ok("followed")).unwrap();
        assert_eq!(found, [(7, "count 0".to_owned()), (8, "count 1".to_owned())]);
        assert_eq!(followed, "followed");
    }

    #[test]
    fn nobody_begins_where_a_thread_cannot_be_had() {
        let (begun, halted, followed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let count = |count: &AtomicUsize| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let body = |_: &Crew<'_, Fault>, ()| {
            count(&begun);
            Ok(())
        };
        let follow = |_: &Crew<'_, Fault>| {
            count(&followed);
            Ok(())
        };
        let halt = || count(&halted);
        let fault = spawning("few", vec![(); 50], &halt, body, follow, refused(20)).unwrap_err();
        assert_eq!((fault.code.as_ref(), fault.of_host), ("host.threads", true));
        let counts = [&begun, &halted, &followed].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [0, 1, 0]);
    }

    #[test]
    fn the_first_error_wins_and_the_others_are_stopped() {
        let (tell, told) = channel();
        let body = |crew: &Crew<'_, Fault>, (number, _tell): (usize, _)| -> Result<(), Fault> {
            if number == 3 {
                return Err(Fault::new("three", "").coded("test.three", serde_json::Value::Null));
            }
            while crew.meet() {}
            Err(Fault::new("a follower", ""))
        };
        let seats = (0..8).map(|number| (number, tell.clone())).collect();
        drop(tell);
        // It ends when no thread has its sender any more.
        let follow = |_: &Crew<'_, Fault>| Ok::<bool, Fault>(told.recv() == Ok(()));
        let fault = crew("err", seats, &NO_HALT, body, follow).unwrap_err();
        assert_eq!(fault.code, "test.three");
    }

    #[test]
    fn a_panic_is_an_error_with_its_message_wherever_it_comes_from() {
        let body = |crew: &Crew<'_, Fault>, number: usize| {
            assert!(number != 1, "number {number} is not served");
            while crew.meet() {}
            Ok(())
        };
        let fault = crew("panic", (0..3).collect(), &NO_HALT, body, |_| Ok(())).unwrap_err();
        assert_eq!(fault.code, "engine.panic");
        assert_eq!(fault.data["thread"], "panic 1");
        assert_eq!(fault.data["message"], "number 1 is not served");
        let idle = |crew: &Crew<'_, Fault>, ()| {
            while crew.meet() {}
            Ok(())
        };
        let follow = |_: &Crew<'_, Fault>| -> Result<(), Fault> { panic!("nobody listens") };
        let fault = crew("panic", vec![(); 2], &NO_HALT, idle, follow).unwrap_err();
        assert_eq!(fault.data["message"], "nobody listens");
    }

    #[test]
    fn threads_wait_for_one_another_and_not_for_one_that_has_ended() {
        let stage = AtomicUsize::new(0);
        let body = |crew: &Crew<'_, Fault>, number: usize| {
            for round in 1..=100 {
                stage.fetch_add(1, Ordering::Relaxed);
                assert!(crew.meet());
                assert_eq!(stage.load(Ordering::Relaxed), 4 * round, "all have done this round and none the next");
                assert!(crew.meet());
            }
            // Three meet once more, and the fourth has ended.
            Ok(number == 0 || crew.meet())
        };
        let (met, ()) = crew("meet", (0..4).collect(), &NO_HALT, body, |_| Ok(())).unwrap();
        assert_eq!(met, [true; 4]);
    }

    #[test]
    fn the_one_who_follows_can_wait_for_the_end_and_fail_before() {
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let body = |_: &Crew<'_, Fault>, ()| {
            // Its word is that the sender is gone.
            assert!(gone.lock().unwrap().recv().is_err());
            Ok(())
        };
        let follow = |crew: &Crew<'_, Fault>| {
            assert!(!crew.ended_within(Duration::from_millis(1)), "it waits for a word");
            crew.fail(Fault::new("interrupted", "").coded("test.interrupted", serde_json::Value::Null));
            drop(go);
            while !crew.ended_within(Duration::from_secs(60)) {}
            Ok(())
        };
        let fault = crew("wait", vec![()], &NO_HALT, body, follow).unwrap_err();
        assert_eq!(fault.code, "test.interrupted");
    }
}
