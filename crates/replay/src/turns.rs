//! Tasks that share a thread: each works until it must wait for its socket, for a time or for another task, and then others have their turns.
//!
//! Tasks are futures, so that what a lane does stands in the order in which it does it. Who waits gives up its turn ([`pause`]) and looks again
//! when it has the next one: when something happens to its socket, when a time has come that it named, when it is woken, and ten times a second, for an order to stop.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pgdyno_clock::{Events, Waiter, monotonic_ns};
use pgdyno_connection::Fault;
use pgdyno_host as host;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};

use crate::alarms::Alarms;
use crate::errands::Errands;

/// How often every task has a turn.
const LOOK_NS: u64 = 100_000_000;
/// A thread that sleeps is awake about this much after its time (crates/clock, `WakeLead`): who sleeps for less is further from it than who
/// does not wait, and takes a turn of the CPU more. Within a transaction most waits are so short.
pub(crate) const WAKE_NS: u64 = 50_000;
/// Events that are taken at a time.
const EVENTS_MAX: usize = 1024;
/// The id of the bell, which is no task's.
const BELL: u64 = u64::MAX;

/// See the module.
pub(crate) struct Turns {
    waiter: RefCell<Waiter>,
    alarms: RefCell<Alarms>,
    /// Of each task, whether something happened to a socket of it.
    heard: RefCell<Vec<bool>>,
    /// Whose turn it is.
    task: Cell<usize>,
    woken: Arc<Woken>,
    /// For what blocks.
    pub errands: Errands,
}

impl Turns {
    /// For the tasks of this thread.
    pub(crate) fn new(errands: &Errands) -> Result<Self, Fault> {
        let made = || -> io::Result<(Waiter, OwnedFd)> {
            let waiter = Waiter::new()?;
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // It tells each time that it is rung, and is not read.
            epoll::add(&waiter, &bell, EventData::new_u64(BELL), EventFlags::IN | EventFlags::ET)?;
            Ok((waiter, bell))
        };
        let (waiter, bell) = made().map_err(|error| kernel(&error))?;
        Ok(Self {
            waiter: RefCell::new(waiter),
            alarms: RefCell::default(),
            heard: RefCell::default(),
            task: Cell::new(0),
            woken: Arc::new(Woken { tasks: Mutex::default(), sleeps: AtomicBool::new(false), bell }),
            errands: errands.clone(),
        })
    }

    /// Until all tasks are done.
    pub(crate) fn run<F: Future<Output = ()>>(&self, tasks: impl IntoIterator<Item = F>) -> Result<(), Fault> {
        let mut tasks: Vec<Option<Pin<Box<F>>>> = tasks.into_iter().map(|task| Some(Box::pin(task))).collect();
        let ring_of = |task| Waker::from(Arc::new(Ring { woken: Arc::clone(&self.woken), task }));
        let rings: Vec<Waker> = (0..tasks.len()).map(ring_of).collect();
        *self.heard.borrow_mut() = vec![false; tasks.len()];
        *self.alarms.borrow_mut() = Alarms::of(tasks.len());
        let mut events = Events::with_capacity(tasks.len().clamp(16, EVENTS_MAX));
        let (mut left, mut look_ns) = (tasks.len(), monotonic_ns() + LOOK_NS);
        let mut next: Vec<usize> = (0..tasks.len()).collect();
        while left > 0 {
            for task in next.drain(..) {
                let Some(working) = &mut tasks[task] else { continue };
                self.task.set(task);
                if working.as_mut().poll(&mut Context::from_waker(&rings[task])).is_ready() {
                    tasks[task] = None;
                    left -= 1;
                }
            }
            if left == 0 {
                break;
            }
            let now_ns = self.wait(&mut next, &mut events, look_ns).map_err(|error| kernel(&error))?;
            if now_ns >= look_ns {
                next.extend(0..tasks.len());
                look_ns = now_ns + LOOK_NS;
            }
        }
        Ok(())
    }

    /// Waits until somebody has a turn, or it is time to look. Returns when that was.
    fn wait(&self, next: &mut Vec<usize>, events: &mut Events, look_ns: u64) -> io::Result<u64> {
        self.woken.take(next);
        let now_ns = monotonic_ns();
        let alarm_ns = self.alarms.borrow_mut().next_ns();
        let is_due = !next.is_empty() || alarm_ns < now_ns + WAKE_NS;
        let until_ns = if is_due { 0 } else { alarm_ns.min(look_ns) };
        self.waiter.borrow_mut().wait(events, until_ns, now_ns)?;
        self.woken.sleeps.store(false, Ordering::SeqCst);
        let mut heard = self.heard.borrow_mut();
        for (id, _) in events.iter().filter_map(|event| Waiter::told(*event)) {
            if id != BELL {
                heard[id as usize] = true;
                next.push(id as usize);
            }
        }
        let woke_ns = monotonic_ns();
        self.alarms.borrow_mut().take(woke_ns + WAKE_NS, next);
        Ok(woke_ns)
    }

    /// Gives the task a turn at an instant of CLOCK_MONOTONIC, and no longer at the one before.
    pub(crate) fn alarm(&self, at_ns: u64) {
        self.alarms.borrow_mut().set(self.task.get(), at_ns);
    }

    /// The task waits for no instant any more.
    pub(crate) fn no_alarm(&self) {
        self.alarms.borrow_mut().unset(self.task.get());
    }

    /// Gives the task a turn when something comes by a socket. A closed socket is forgotten.
    pub(crate) fn watch(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::add(&*self.waiter.borrow(), socket, self.data(), EventFlags::IN | EventFlags::ET)?)
    }

    /// The same of a watched socket when it takes something again, or no longer.
    pub(crate) fn watch_writing(&self, socket: impl AsFd, is_wanted: bool) -> io::Result<()> {
        let wanted = if is_wanted { EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&*self.waiter.borrow(), socket, self.data(), wanted | EventFlags::ET)?)
    }

    fn data(&self) -> EventData {
        EventData::new_u64(self.task.get() as u64)
    }

    /// Whether something happened to a socket of the task since this was asked last.
    pub(crate) fn heard(&self) -> bool {
        std::mem::take(&mut self.heard.borrow_mut()[self.task.get()])
    }

    /// Waits until an instant, or until it `stops`. Not for less than it takes to wake up: then it returns so much earlier.
    pub(crate) async fn wait_until(&self, at_ns: u64, stops: impl Fn() -> bool) {
        let mut is_set = false;
        while !is_due(at_ns) && !stops() {
            if !is_set {
                self.alarm(at_ns);
                is_set = true;
            }
            pause().await;
        }
        if is_set {
            self.no_alarm();
        }
    }

    /// What `work` comes to, which blocks: others have their turns meanwhile. None if it `stops` before.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        stops: impl Fn() -> bool,
    ) -> Option<T> {
        if stops() {
            return None;
        }
        let (give, given) = channel();
        let ring = ring().await;
        self.errands.send(move || {
            // Who has stopped does not want it.
            let _ = give.send(work());
            ring.wake();
        });
        loop {
            match given.try_recv() {
                Ok(found) => return Some(found),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if stops() => return None,
                Err(TryRecvError::Empty) => pause().await,
            }
        }
    }
}

/// Whether an instant has come, or is so near that nobody waits for it.
pub(crate) fn is_due(at_ns: u64) -> bool {
    at_ns.saturating_sub(monotonic_ns()) < WAKE_NS
}

/// Gives up the turn, until the next one.
pub(crate) async fn pause() {
    let mut has_paused = false;
    poll_fn(|_| if std::mem::replace(&mut has_paused, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Gives up the turn for those who have something to do.
pub(crate) async fn give_way() {
    ring().await.wake();
    pause().await;
}

/// With which the task is woken, by whichever thread.
pub(crate) async fn ring() -> Waker {
    poll_fn(|context| Poll::Ready(context.waker().clone())).await
}

/// Tasks that were woken.
struct Woken {
    tasks: Mutex<Vec<usize>>,
    /// Whether their thread may be asleep.
    sleeps: AtomicBool,
    bell: OwnedFd,
}

impl Woken {
    /// Moves them to `next`. Whoever comes later rings.
    fn take(&self, next: &mut Vec<usize>) {
        self.sleeps.store(true, Ordering::SeqCst);
        next.append(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Wakes a task.
struct Ring {
    woken: Arc<Woken>,
    task: usize,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
        if self.woken.sleeps.swap(false, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.woken.bell, &1_u64.to_ne_bytes());
        }
    }
}

fn kernel(error: &io::Error) -> Fault {
    host::Fault::of_kernel("sockets cannot be watched", error).into()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    const MINUTE_NS: u64 = 60_000_000_000;

    fn turns() -> Turns {
        Turns::new(&Errands::start(1).unwrap()).unwrap()
    }

    #[test]
    fn each_has_its_turn_at_its_time() {
        let (turns, begin_ns, order) = (turns(), monotonic_ns(), RefCell::new(Vec::new()));
        turns
            .run([3, 1, 2].map(|number| {
                let (turns, order) = (&turns, &order);
                async move {
                    turns.wait_until(begin_ns + number * 2_000_000, || false).await;
                    assert!(monotonic_ns() + WAKE_NS >= begin_ns + number * 2_000_000);
                    order.borrow_mut().push(number);
                }
            }))
            .unwrap();
        assert_eq!(order.into_inner(), [1, 2, 3]);
    }

    #[test]
    fn who_gives_way_goes_on_behind_the_others() {
        let (turns, order) = (turns(), RefCell::new(Vec::new()));
        turns
            .run((0..2).map(|number| {
                let order = &order;
                async move {
                    for _ in 0..2 {
                        order.borrow_mut().push(number);
                        give_way().await;
                    }
                }
            }))
            .unwrap();
        assert_eq!(order.into_inner(), [0, 1, 0, 1]);
    }

    #[test]
    fn who_waits_for_a_socket_hears_of_it_and_who_waits_for_its_room_too() {
        let (turns, (here, there)) = (turns(), UnixStream::pair().unwrap());
        here.set_nonblocking(true).unwrap();
        there.set_nonblocking(true).unwrap();
        let room = std::iter::from_fn(|| (&here).write(&[0; 4096]).ok()).sum::<usize>();
        let writes = async {
            turns.watch(&here).unwrap();
            turns.watch_writing(&here, true).unwrap();
            while !turns.heard() {
                pause().await;
            }
            turns.watch_writing(&here, false).unwrap();
            assert!((&here).write(&[1]).is_ok());
        };
        let reads = async {
            turns.watch(&there).unwrap();
            let (mut all, mut buffer) = (0, [0; 4096]);
            while all <= room {
                match (&there).read(&mut buffer) {
                    Ok(read) => all += read,
                    Err(_) => {
                        while !turns.heard() {
                            pause().await;
                        }
                    }
                }
            }
        };
        let both: [Pin<Box<dyn Future<Output = ()> + '_>>; 2] = [Box::pin(writes), Box::pin(reads)];
        turns.run(both).unwrap();
    }

    #[test]
    fn what_is_done_aside_comes_back_and_who_stops_does_not_wait_for_it() {
        let turns = turns();
        let begin_ns = monotonic_ns();
        let found = Cell::new(None);
        turns
            .run([async {
                let given = turns.aside(|| std::thread::current().id(), || false).await;
                found.set(given);
                let (_held, waits) = channel::<()>();
                assert_eq!(turns.aside(move || waits.recv().is_ok(), || monotonic_ns() > begin_ns + 1).await, None);
                turns.wait_until(begin_ns + MINUTE_NS, || monotonic_ns() > begin_ns + 5_000_000).await;
            }])
            .unwrap();
        assert!(found.get().is_some_and(|thread| thread != std::thread::current().id()));
        assert!(monotonic_ns() - begin_ns < MINUTE_NS / 2);
    }
}
