//! Chunks that wait for a session.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A queue of bounded length, of several writers and readers.
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    room: Condvar,
    work: Condvar,
    length_max: usize,
}

struct Inner<T> {
    waiting: VecDeque<T>,
    writers: usize,
    stopped: bool,
}

impl<T> Queue<T> {
    /// Empty, with this number of writers.
    pub(crate) fn new(length_max: usize, writers: usize) -> Self {
        let inner = Inner { waiting: VecDeque::new(), writers, stopped: false };
        Self { inner: Mutex::new(inner), room: Condvar::new(), work: Condvar::new(), length_max }
    }

    /// Appends, once there is room. False when it is to stop.
    pub(crate) fn push(&self, item: T) -> bool {
        let mut inner = self.lock();
        while inner.waiting.len() >= self.length_max && !inner.stopped {
            inner = self.room.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if inner.stopped {
            return false;
        }
        inner.waiting.push_back(item);
        self.work.notify_one();
        true
    }

    /// The next one, once there is one; none when there will be no more.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut inner = self.lock();
        while inner.waiting.is_empty() && inner.writers > 0 && !inner.stopped {
            inner = self.work.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if inner.stopped {
            return None;
        }
        let item = inner.waiting.pop_front();
        self.room.notify_one();
        item
    }

    /// A writer has written its last.
    pub(crate) fn leave(&self) {
        self.lock().writers -= 1;
        self.work.notify_all();
    }

    /// Nothing waits from here on.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.room.notify_all();
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_out_once_and_then_it_ends() {
        let queue = Queue::new(2, 3);
        let mut found: Vec<usize> = std::thread::scope(|scope| {
            for writer in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    for item in 0..100 {
                        assert!(queue.push(writer * 100 + item));
                    }
                    queue.leave();
                });
            }
            let readers: Vec<_> =
                (0..2).map(|_| scope.spawn(|| std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>())).collect();
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        });
        found.sort_unstable();
        assert_eq!(found, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn an_order_to_stop_ends_all_waiting() {
        let (full, empty) = (Queue::new(1, 1), Queue::<u8>::new(1, 1));
        assert!(full.push(0));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| full.push(1));
            let reader = scope.spawn(|| empty.pop());
            full.stop();
            empty.stop();
            assert_eq!((writer.join().unwrap(), reader.join().unwrap()), (false, None));
        });
    }
}
