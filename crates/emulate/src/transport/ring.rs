//! The ring of one volume, and the thread that owns it.
//!
//! The kernel has a queue for each CPU, and puts a request into an entry of the queue of the CPU that asked. All entries are of
//! one ring: who answers a request on it gets the next one. The thread has the best ordinary priority and not a real-time one,
//! so that requests gather while it works (docs/decision/0010).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use io_uring::types::{Fd, SubmitArgs};
use io_uring::{EnterFlags, IoUring, cqueue, opcode as operation, squeue};

use super::abi::{COMMIT_AND_FETCH, CommandRequest, REGISTER, bytes_of};
use super::answers;
use super::entries::{Entries, HandedOver};
use crate::fs::Exported;
use crate::release;
use crate::slots::{SLOTS, SlotIndex};

/// Entries of all queues of a volume on a machine with few CPUs: what a loop device keeps in flight may all arrive on one.
const ENTRIES: usize = 256;
const LEAST_ENTRIES_OF_A_QUEUE: usize = 32;
/// Answers that the kernel is told of before more requests are taken in.
const TOLD_TOGETHER: usize = 16;
/// The name of the call of another thread, among those of the entries.
const CALL: u64 = u64::MAX;

type Io = IoUring<squeue::Entry128, cqueue::Entry>;

/// A thread with a ring and its memory, before the kernel knows of them: once a session has agreed to a ring it is served by
/// nothing else.
pub(crate) struct Prepared {
    thread: JoinHandle<()>,
    give: SyncSender<OwnedFd>,
    told: Receiver<io::Result<()>>,
}

/// Makes what can be refused before a session is asked.
///
/// # Errors
/// The kernel gives no ring, or there are too many CPUs for one.
pub(crate) fn prepare(exported: Arc<Exported>) -> io::Result<Prepared> {
    let (give, given) = sync_channel(1);
    let (tell, told) = sync_channel(1);
    // The ring is of the thread that makes it.
    let run = move || {
        let made = Ring::new(exported);
        let (result, ring) = made.map_or_else(|error| (Err(error), None), |ring| (Ok(()), Some(ring)));
        let _ = tell.send(result);
        // Without a session there is nothing to serve.
        let Some((mut ring, fuse)) = ring.zip(given.recv().ok()) else { return };
        let begun = ring.begin(&fuse);
        let is_served = begun.is_ok();
        let _ = tell.send(begun);
        if is_served {
            ring.serve(&fuse);
        }
    };
    let thread = std::thread::Builder::new().name("ring".to_owned()).spawn(run)?;
    heard(&told)?;
    Ok(Prepared { thread, give, told })
}

impl Prepared {
    /// Lets a session's requests arrive on the ring. The thread ends with the session.
    ///
    /// # Errors
    /// The kernel refuses the entries.
    pub(crate) fn begin(self, fuse: OwnedFd) -> io::Result<JoinHandle<()>> {
        let _ = self.give.send(fuse);
        heard(&self.told)?;
        Ok(self.thread)
    }
}

fn heard(told: &Receiver<io::Result<()>>) -> io::Result<()> {
    told.recv().unwrap_or_else(|_| Err(io::Error::other("the thread of the ring ended")))
}

struct Ring {
    /// The first, so that it is closed before the memory that it knows goes.
    io: Io,
    entries: Arc<Entries>,
    exported: Arc<Exported>,
    entries_of_a_queue: u16,
    /// Entries that the kernel knows.
    alive: usize,
    arrived: Vec<cqueue::Entry>,
    due: Vec<(SlotIndex, bool)>,
    handed_over: Vec<HandedOver>,
    /// A thread that waits for requests does not wait for a disk, where the kernel can tell.
    wait_flags: EnterFlags,
}

impl Ring {
    /// Makes the ring, which is the calling thread's.
    fn new(exported: Arc<Exported>) -> io::Result<Self> {
        let queues = possible_cpus()?;
        let entries_of_a_queue = (ENTRIES / queues).max(LEAST_ENTRIES_OF_A_QUEUE) as u16;
        let count = u16::try_from(queues * usize::from(entries_of_a_queue))
            .map_err(|_| io::Error::other("the machine has too many CPUs"))?;
        let io: Io = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(2 * u32::from(count))?;
        let entries = Arc::new(Entries::new(count, exported.request_bytes as usize)?);
        let wait_flags = if io.params().is_feature_no_iowait() { EnterFlags::NO_IOWAIT } else { EnterFlags::empty() };
        let alive = usize::from(count);
        let (arrived, handed_over) = (Vec::with_capacity(4 * alive), Vec::with_capacity(alive));
        let due = Vec::with_capacity(SLOTS);
        Ok(Self { io, entries, exported, entries_of_a_queue, alive, arrived, due, handed_over, wait_flags })
    }

    /// Gives the kernel the entries.
    fn begin(&mut self, fuse: &OwnedFd) -> io::Result<()> {
        for entry in 0..self.entries.count() {
            let qid = entry / self.entries_of_a_queue;
            let request = CommandRequest { flags: 0, commit_id: 0, qid, padding: [0; 6] };
            let mut command = command(fuse, REGISTER, &request, entry);
            tell_of_memory(&mut command, self.entries.iovecs(entry));
            push(&mut self.io, &command);
        }
        self.io.submit()?;
        // What the kernel refuses it has refused by now.
        if let Some(refused) = self.io.completion().find(|told| told.result() < 0) {
            // Some may have been taken, and the kernel lets go of those only with the session.
            std::mem::forget(self.entries.clone());
            return Err(io::Error::from_raw_os_error(-refused.result()));
        }
        self.listen();
        Ok(())
    }

    /// Hears calls. Each is told when it comes, and need not be read.
    fn listen(&mut self) {
        let poll = operation::PollAdd::new(Fd(self.entries.call_fd()), libc::POLLIN as u32).multi(true);
        push(&mut self.io, &poll.build().user_data(CALL).into());
    }

    /// Serves until the kernel has let go of all entries.
    fn serve(&mut self, fuse: &OwnedFd) {
        while self.alive > 0 {
            self.tell(fuse);
            while !self.entries.falls_asleep() {
                self.entries.awake();
                self.tell(fuse);
            }
            // A wait that was interrupted is an early one.
            let _ = self.io.submitter().submit_with_args_and_flags(1, &SubmitArgs::new(), self.wait_flags);
            self.entries.awake();
            self.take_in(fuse);
        }
    }

    /// Takes in what has arrived, and answers what is due at once.
    fn take_in(&mut self, fuse: &OwnedFd) {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.extend(self.io.completion());
        let mut taken = 0;
        for told in arrived.drain(..) {
            if told.user_data() == CALL {
                if !cqueue::more(told.flags()) {
                    self.listen();
                }
            } else if told.result() == 0 {
                answers::serve(&self.exported, self.entries.take(told.user_data() as u16));
                taken += 1;
                if taken % TOLD_TOGETHER == 0 {
                    self.tell(fuse);
                    let _ = self.io.submit();
                }
            } else {
                self.alive -= 1;
            }
        }
        self.arrived = arrived;
    }

    /// Puts what is due, or has been answered, where the next call finds it.
    fn tell(&mut self, fuse: &OwnedFd) {
        let Self { io, entries, entries_of_a_queue, due, handed_over, exported, .. } = self;
        release::of_lane(&exported.pipeline.core, exported.pipeline.lane, due);
        entries.drain_answered(|entry, commit_id, by_another| {
            handed_over.extend(by_another);
            let request = CommandRequest { flags: 0, commit_id, qid: entry / *entries_of_a_queue, padding: [0; 6] };
            push(io, &command(fuse, COMMIT_AND_FETCH, &request, entry));
        });
        if !handed_over.is_empty() {
            exported.pipeline.handed_over(handed_over.drain(..));
        }
    }
}

/// Puts a command where the next call finds it. There is room for all entries, and each is told once.
fn push(io: &mut Io, command: &squeue::Entry128) {
    // SAFETY: what a command points to outlives it: the ring ends when the kernel has let go of its entries.
    unsafe { io.submission().push(command) }.expect("the ring has room for all of its entries");
}

fn command(fuse: &OwnedFd, number: u32, request: &CommandRequest, entry: u16) -> squeue::Entry128 {
    let mut bytes = [0; 80];
    bytes[..size_of::<CommandRequest>()].copy_from_slice(bytes_of(request));
    operation::UringCmd80::new(Fd(fuse.as_raw_fd()), number).cmd(bytes).build().user_data(entry.into())
}

/// Where a command says the memory's address and how many parts it has (`struct io_uring_sqe`, `addr` and `len`).
fn tell_of_memory(command: &mut squeue::Entry128, iovecs: *const libc::iovec) {
    const { assert!(size_of::<squeue::Entry128>() == 128) };
    let bytes: *mut u8 = std::ptr::from_mut(command).cast();
    // SAFETY: both places are inside the 128 bytes and aligned for what is written.
    unsafe {
        bytes.add(16).cast::<u64>().write(iovecs as u64);
        bytes.add(24).cast::<u32>().write(2);
    }
}

/// How many queues the kernel wants served: one for each CPU that there may be.
fn possible_cpus() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other("the kernel's list of CPUs is not one"))
}
