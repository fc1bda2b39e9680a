//! The entries of one volume's queues: memory in which the kernel puts a request and finds its answer.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fuser::Errno;
use pgdyno_volume::{IoId, Op};
use rustix::event::{EventfdFlags, eventfd};

use super::abi::{InHeader, OutHeader, Plain, RequestHeader, WriteOut, bytes_of, from_area};
use crate::store::{AlignedBuffer, BLOCK_BYTES};

/// Bytes from one header to the next: none shares a line of the cache with another.
const HEADER_STRIDE: usize = size_of::<RequestHeader>().next_multiple_of(64);
/// The kernel takes no entry with less (`FUSE_MIN_READ_BUFFER`).
const LEAST_PAYLOAD_BYTES: usize = 8 << 10;

/// Memory of all entries, and those of them that have an answer which the kernel has not been told.
#[derive(Debug)]
pub(crate) struct Entries {
    headers: *mut u8,
    payloads: *mut u8,
    payload_bytes: usize,
    /// What the kernel is told of each: header and payload.
    iovecs: Vec<[libc::iovec; 2]>,
    answered: Mutex<Vec<(u16, Option<HandedOver>)>>,
    /// Wakes the thread of the ring.
    call: OwnedFd,
    /// That thread finds no answer by itself: it sleeps, or is about to.
    asleep: AtomicBool,
    _memory: [AlignedBuffer; 2],
}

// SAFETY: an entry's memory is the kernel's or that of the one `RingReply` which names it, and the list has a lock.
unsafe impl Send for Entries {}
// SAFETY: as above.
unsafe impl Sync for Entries {}

impl Entries {
    /// `count` entries for requests of up to `request_bytes`.
    pub(crate) fn new(count: u16, request_bytes: usize) -> io::Result<Self> {
        let call = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let payload_bytes = request_bytes.max(LEAST_PAYLOAD_BYTES).next_multiple_of(BLOCK_BYTES as usize);
        let count = usize::from(count);
        let mut memory = [AlignedBuffer::new(count * HEADER_STRIDE), AlignedBuffer::new(count * payload_bytes)];
        let [headers, payloads] = memory.each_mut().map(|buffer| buffer.as_mut_ptr());
        let part = |base: *mut u8, bytes: usize| libc::iovec { iov_base: base.cast(), iov_len: bytes };
        let iovecs = (0..count)
            .map(|entry| {
                // SAFETY: each buffer has `count` parts of its stride.
                let (header, payload) =
                    unsafe { (headers.add(entry * HEADER_STRIDE), payloads.add(entry * payload_bytes)) };
                [part(header, size_of::<RequestHeader>()), part(payload, payload_bytes)]
            })
            .collect();
        let answered = Mutex::new(Vec::with_capacity(count));
        let asleep = AtomicBool::new(false);
        Ok(Self { headers, payloads, payload_bytes, iovecs, answered, call, asleep, _memory: memory })
    }

    pub(crate) fn count(&self) -> u16 {
        self.iovecs.len() as u16
    }

    /// What the kernel is told of an entry.
    pub(crate) fn iovecs(&self, entry: u16) -> *const libc::iovec {
        self.iovecs[usize::from(entry)].as_ptr()
    }

    fn header(&self, entry: u16) -> *mut RequestHeader {
        assert!(entry < self.count());
        // SAFETY: in range; the stride is a multiple of the alignment.
        unsafe { self.headers.add(usize::from(entry) * HEADER_STRIDE).cast() }
    }

    fn payload(&self, entry: u16) -> *mut u8 {
        assert!(entry < self.count());
        // SAFETY: in range.
        unsafe { self.payloads.add(usize::from(entry) * self.payload_bytes) }
    }

    /// Takes over the request that the kernel has put into an entry.
    pub(crate) fn take(self: &Arc<Self>, entry: u16) -> RingRequest {
        // SAFETY: the kernel has completed the entry's command, so its header is ours until it is committed.
        let header = unsafe { self.header(entry).read() };
        let unique = header.entry.commit_id;
        let reply = RingReply { entries: self.clone(), entry, unique, op: Op::Read, len: 0, is_answered: false };
        RingRequest { header: from_area(&header.in_out), op_in: header.op_in, sent: header.entry.payload_sz, reply }
    }

    /// Goes through what has been answered, and forgets it.
    pub(crate) fn drain_answered(&self, mut tell: impl FnMut(u16, u64, Option<HandedOver>)) {
        for (entry, handed_over) in self.answered.lock().expect("no holder panics").drain(..) {
            // SAFETY: an answered entry is ours until it is committed.
            let commit_id = unsafe { (*self.header(entry)).entry.commit_id };
            tell(entry, commit_id, handed_over);
        }
    }

    /// Whether the ring's thread may sleep: there is no answer to tell. From then on until [`Self::awake`] answers call it.
    pub(crate) fn falls_asleep(&self) -> bool {
        // Before the list is looked at: an answer comes before that and is seen, or after it and calls.
        self.asleep.store(true, Ordering::Relaxed);
        self.answered.lock().expect("no holder panics").is_empty()
    }

    /// The ring's thread looks for answers again before it sleeps.
    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// What the ring's thread hears calls on.
    pub(crate) fn call_fd(&self) -> RawFd {
        self.call.as_raw_fd()
    }
}

/// A request that is answered, and that counts as released when the kernel is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandedOver {
    /// What the model knows it by.
    pub(crate) id: IoId,
    pub(crate) failed: bool,
}

/// A request as it came in.
pub(crate) struct RingRequest {
    pub(crate) header: InHeader,
    op_in: [u64; 16],
    /// Bytes of its payload.
    sent: u32,
    pub(crate) reply: RingReply,
}

impl RingRequest {
    /// What is particular to its operation.
    pub(crate) fn of_operation<T: Plain>(&self) -> T {
        from_area(&self.op_in)
    }

    /// The name in it.
    pub(crate) fn name(&self) -> &[u8] {
        let sent = (self.sent as usize).min(self.reply.entries.payload_bytes);
        // SAFETY: the entry is the reply's until it is answered, and its payload is written by way of the reply alone.
        let name = unsafe { std::slice::from_raw_parts(self.reply.entries.payload(self.reply.entry), sent) };
        name.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// The answer that a request on the ring waits for, and the memory for its data. One that is dropped is an I/O error.
#[derive(Debug)]
pub(crate) struct RingReply {
    entries: Arc<Entries>,
    entry: u16,
    unique: u64,
    /// Of a transfer: what it is, and its length.
    pub(crate) op: Op,
    pub(crate) len: u32,
    is_answered: bool,
}

impl RingReply {
    /// It is answered as a transfer.
    pub(crate) fn transfer(self, op: Op, len: u32) -> Self {
        let mut reply = self;
        (reply.op, reply.len) = (op, len);
        reply
    }

    /// Memory for data in either direction.
    pub(crate) fn payload(&mut self) -> &mut [u8] {
        // SAFETY: the entry is this reply's until it is answered, and the borrow is of the reply.
        unsafe { std::slice::from_raw_parts_mut(self.entries.payload(self.entry), self.entries.payload_bytes) }
    }

    /// The data of the transfer.
    pub(crate) fn data(&mut self) -> &mut [u8] {
        let len = self.len as usize;
        &mut self.payload()[..len]
    }

    /// The read is done, and what was read is in its data. For the ring's own thread, which then tells the kernel.
    pub(crate) fn done(self) {
        self.finished(None);
    }

    /// The transfer is done, or has failed. The thread of the ring tells the kernel, and is woken for it if it sleeps.
    pub(crate) fn hand_over(self, id: IoId, failed: bool) {
        let handed_over = Some(HandedOver { id, failed });
        let entries = self.entries.clone();
        if failed {
            self.answer(libc::EIO, 0, handed_over);
        } else {
            self.finished(handed_over);
        }
        // Later ones are found with the first.
        if entries.asleep.swap(false, Ordering::Relaxed) {
            // It fails only when nobody has listened for 2^64 calls.
            let _ = rustix::io::write(&entries.call, &1u64.to_ne_bytes());
        }
    }

    fn finished(mut self, handed_over: Option<HandedOver>) {
        let bytes = match self.op {
            Op::Read => self.len as usize,
            Op::Write => {
                let written = WriteOut { size: self.len, padding: 0 };
                self.payload()[..size_of::<WriteOut>()].copy_from_slice(bytes_of(&written));
                size_of::<WriteOut>()
            }
        };
        self.answer(0, bytes, handed_over);
    }

    /// Answers with a structure.
    pub(crate) fn plain<T: Plain>(self, value: &T) {
        self.bytes(bytes_of(value));
    }

    /// Answers with bytes.
    pub(crate) fn bytes(mut self, bytes: &[u8]) {
        self.payload()[..bytes.len()].copy_from_slice(bytes);
        self.answer(0, bytes.len(), None);
    }

    pub(crate) fn error(self, error: Errno) {
        self.answer(error.code(), 0, None);
    }

    fn answer(mut self, error: i32, bytes: usize, handed_over: Option<HandedOver>) {
        self.is_answered = true;
        self.put(error, bytes, handed_over);
    }

    fn put(&self, error: i32, bytes: usize, handed_over: Option<HandedOver>) {
        let len = (size_of::<OutHeader>() + bytes) as u32;
        let header = self.entries.header(self.entry);
        // SAFETY: the entry is this reply's until it is in the list; an area of a header is as large as any header.
        unsafe {
            (&raw mut (*header).in_out).cast::<OutHeader>().write(OutHeader {
                len,
                error: -error,
                unique: self.unique,
            });
            (*header).entry.payload_sz = bytes as u32;
        }
        self.entries.answered.lock().expect("no holder panics").push((self.entry, handed_over));
    }
}

impl Drop for RingReply {
    fn drop(&mut self) {
        if !self.is_answered {
            self.put(libc::EIO, 0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a request where the kernel would.
    fn arrives(entries: &Arc<Entries>, entry: u16, unique: u64) -> RingRequest {
        // SAFETY: nobody else has the entry.
        unsafe { (*entries.header(entry)).entry.commit_id = unique };
        entries.take(entry)
    }

    fn told(entries: &Entries) -> Vec<(u16, u64, bool)> {
        let mut told = Vec::new();
        entries.drain_answered(|entry, commit_id, by_another| told.push((entry, commit_id, by_another.is_some())));
        told
    }

    fn answer(entries: &Entries, entry: u16) -> (OutHeader, u32) {
        // SAFETY: as above.
        let header = unsafe { entries.header(entry).read() };
        (from_area(&header.in_out), header.entry.payload_sz)
    }

    #[test]
    fn an_answer_stands_where_the_kernel_looks_and_is_told_once() {
        let entries = Arc::new(Entries::new(3, 4096).expect("a descriptor"));
        let mut read = arrives(&entries, 0, 70).reply.transfer(Op::Read, 4096);
        read.data().fill(7);
        read.done();
        arrives(&entries, 1, 71).reply.transfer(Op::Write, 512).hand_over(IoId(5), false);
        drop(arrives(&entries, 2, 72));
        assert_eq!(told(&entries), [(0, 70, false), (1, 71, true), (2, 72, false)]);
        assert_eq!(told(&entries), []);
        let (header, bytes) = answer(&entries, 0);
        assert_eq!((header.len, header.error, header.unique, bytes), (16 + 4096, 0, 70, 4096));
        let (header, bytes) = answer(&entries, 1);
        assert_eq!((header.len, header.error, header.unique, bytes), (24, 0, 71, 8));
        let (header, bytes) = answer(&entries, 2);
        assert_eq!(
            (header.len, header.error, header.unique, bytes),
            (16, -libc::EIO, 72, 0),
            "never without an answer"
        );
    }

    /// The ring's thread is called for the first answer while it sleeps, and finds the others with it.
    #[test]
    fn an_answer_calls_the_thread_that_sleeps_and_no_other() {
        let entries = Arc::new(Entries::new(3, 4096).expect("a descriptor"));
        let calls = || {
            let mut count = [0; 8];
            rustix::io::read(&entries.call, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
        };
        let answer_all = || {
            for (entry, failed) in [(0, false), (1, true), (2, false)] {
                let reply = arrives(&entries, entry, u64::from(entry)).reply.transfer(Op::Read, 4096);
                reply.hand_over(IoId(u64::from(entry)), failed);
            }
        };
        answer_all();
        assert!(!entries.falls_asleep(), "it has answers to tell");
        entries.awake();
        assert_eq!((calls(), told(&entries).len()), (0, 3), "it was awake");
        assert!(entries.falls_asleep());
        answer_all();
        assert_eq!((calls(), told(&entries).len()), (1, 3));
        assert_eq!(answer(&entries, 1).0.error, -libc::EIO);
    }
}
