//! The outstanding requests of one volume: their answers and their data.
//!
//! A slot is locked while its data is moved. From memory that takes microseconds, and a release that comes early waits; from a
//! disk it takes longer, so a release asks [`Transfer`] first and leaves the answer to the worker: other requests are due.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::{Errno, ReplyData, ReplyWrite};
use pgdyno_volume::{IoId, Op};

use crate::store::AlignedBuffer;
use crate::write_log::Recorder;

/// Slots of a volume: twice what a loop device keeps in flight, which is proved when it is attached. Who finds none waits for one.
pub(crate) const SLOTS: usize = 256;

/// The number of an outstanding request: its lane, which is its volume, and its slot in that lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotIndex(u16);

impl SlotIndex {
    /// All slots of a lane, the last one first.
    pub(crate) fn of_lane(lane: usize) -> Vec<Self> {
        (lane * SLOTS..(lane + 1) * SLOTS).rev().map(|index| Self(index as u16)).collect()
    }

    /// The slot of a request that the model knows by `id`.
    pub(crate) fn of(IoId(id): IoId) -> Self {
        Self(id as u16)
    }

    /// The number by which the model knows its request.
    pub(crate) fn id(self) -> IoId {
        IoId(u64::from(self.0))
    }

    /// Its place among the slots of all lanes.
    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn lane(self) -> usize {
        self.place() / SLOTS
    }
}

/// When a request that was just submitted is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// As soon as its data is moved, by the thread that moves it.
    Now,
    /// At its instant, by the release thread.
    Later,
}

/// What became of a request whose instant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The answer is sent.
    Sent {
        /// It is an I/O error.
        failed: bool,
    },
    /// A worker still moves the data, and sends the answer when it is done.
    WaitsForData,
}

/// The answer that a request waits for.
#[derive(Debug)]
pub(crate) enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
}

/// One outstanding request: its answer and its data.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) buffer: AlignedBuffer,
    pub(crate) len: usize,
    pub(crate) reply: Option<Reply>,
    /// The store failed.
    pub(crate) failed: bool,
    /// A fault of the model ends it with an I/O error.
    pub(crate) injected: bool,
    /// Its number in the write log.
    pub(crate) logged: Option<u32>,
    /// Data that is not moved yet.
    pub(crate) moving: Option<Moving>,
}

/// A transfer between a slot's buffer and the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    pub(crate) op: Op,
    pub(crate) offset: u64,
}

/// How far a worker is with a request's data, and whether the request's instant has come.
#[derive(Debug, Default)]
pub(crate) struct Transfer(AtomicU8);

impl Transfer {
    /// No worker has the request.
    const NONE: u8 = 0;
    const MOVING: u8 = 1;
    /// The instant has come: the worker sends the answer.
    const AWAITED: u8 = 2;
    /// As above; the answer is an I/O error of the model.
    const AWAITED_FAULT: u8 = 3;

    /// A worker will move the data.
    pub(crate) fn begin(&self) {
        self.0.store(Self::MOVING, Ordering::Release);
    }

    /// The request's instant has come: whether a worker sends the answer.
    pub(crate) fn awaits(&self, injected: bool) -> bool {
        let to = if injected { Self::AWAITED_FAULT } else { Self::AWAITED };
        self.0.compare_exchange(Self::MOVING, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The data is moved. If the request's instant has come meanwhile: whether the model ends it with an I/O error.
    pub(crate) fn end(&self) -> Option<bool> {
        match self.0.swap(Self::NONE, Ordering::AcqRel) {
            Self::AWAITED => Some(false),
            Self::AWAITED_FAULT => Some(true),
            _ => None,
        }
    }
}

/// A slot, and what is known of it without its lock.
#[derive(Debug)]
struct Place {
    transfer: Transfer,
    slot: Mutex<Slot>,
}

/// The slots of one lane.
#[derive(Debug)]
pub(crate) struct Slots {
    places: Vec<Place>,
    /// Workers move the data.
    on_disk: bool,
    write_log: Option<Arc<Recorder>>,
    /// Requests that are answered with an I/O error: counted before the answer goes out.
    failed: Arc<AtomicU64>,
}

impl Slots {
    /// Allocates everything that requests of up to `request_bytes` need. `on_disk`: the buffers' pages too. `write_log`: where
    /// answers to writes are noted.
    pub(crate) fn new(request_bytes: usize, on_disk: bool, write_log: Option<Arc<Recorder>>) -> Self {
        let buffer =
            || if on_disk { AlignedBuffer::resident(request_bytes) } else { AlignedBuffer::new(request_bytes) };
        let slot = || Slot {
            buffer: buffer(),
            len: 0,
            reply: None,
            failed: false,
            injected: false,
            logged: None,
            moving: None,
        };
        let place = || Place { transfer: Transfer::default(), slot: Mutex::new(slot()) };
        Self { places: (0..SLOTS).map(|_| place()).collect(), on_disk, write_log, failed: Arc::default() }
    }

    /// How many requests are answered with an I/O error.
    pub(crate) fn failed(&self) -> &Arc<AtomicU64> {
        &self.failed
    }

    fn place(&self, index: SlotIndex) -> &Place {
        &self.places[index.place() % SLOTS]
    }

    pub(crate) fn lock(&self, index: SlotIndex) -> MutexGuard<'_, Slot> {
        self.place(index).slot.lock().expect("a slot's holder does not panic")
    }

    /// The slot of a new request, before the model knows of it: on a disk its instant may come before its data is asked for.
    pub(crate) fn take(&self, index: SlotIndex) -> MutexGuard<'_, Slot> {
        let slot = self.lock(index);
        if self.on_disk {
            self.transfer(index).begin();
        }
        slot
    }

    pub(crate) fn transfer(&self, index: SlotIndex) -> &Transfer {
        &self.place(index).transfer
    }

    /// Answers a request whose instant has come. `injected`: with an I/O error.
    pub(crate) fn answer(&self, index: SlotIndex, injected: bool) -> Answered {
        if self.transfer(index).awaits(injected) {
            return Answered::WaitsForData;
        }
        let mut slot = self.lock(index);
        slot.injected = injected;
        self.send(&mut slot)
    }

    /// Answers a request whose data is there.
    pub(crate) fn send(&self, slot: &mut Slot) -> Answered {
        let failed = self.settle(slot);
        match slot.reply.take() {
            Some(Reply::Read(reply)) if failed => reply.error(Errno::EIO),
            Some(Reply::Write(reply)) if failed => reply.error(Errno::EIO),
            Some(Reply::Read(reply)) => reply.data(&slot.buffer[..slot.len]),
            Some(Reply::Write(reply)) => reply.written(slot.len as u32),
            None => {}
        }
        Answered::Sent { failed }
    }

    /// Whether the answer is an I/O error, which is counted. Before it goes out it is noted in the write log; a write that failed stays
    /// undecided there.
    fn settle(&self, slot: &mut Slot) -> bool {
        let failed = std::mem::take(&mut slot.failed) | std::mem::take(&mut slot.injected);
        let request = slot.logged.take();
        if let Some((log, request)) = self.write_log.as_ref().zip(request)
            && !failed
        {
            log.answer(request);
        }
        if failed {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_does_not_wait_for_a_worker_that_moves_the_data() {
        let slots = Slots::new(4096, false, None);
        let index = SlotIndex::of(IoId(7));
        slots.transfer(index).begin();
        // As a worker holds it while the disk is asked.
        let held = slots.lock(index);
        assert_eq!(slots.answer(index, true), Answered::WaitsForData);
        assert_eq!(slots.transfer(index).end(), Some(true), "the worker learns that it sends the answer, and which");
        drop(held);

        slots.transfer(index).begin();
        assert_eq!(slots.transfer(index).end(), None, "the data is there before its instant");
        assert_eq!(slots.answer(index, false), Answered::Sent { failed: false });
    }
}
