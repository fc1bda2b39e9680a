//! Bytes as memory, of a layer or a write log: copying to and from it needs no system call.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// `statfs` of tmpfs (`linux/magic.h`).
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// A whole file in memory, or memory of its own.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the mapping until it is dropped, and is reached only by copies below.
unsafe impl Send for Mapping {}
// SAFETY: as above. Copies of one block at the same time leave it as one of them or a mix of both, as a device may.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `file`, which is `len` bytes long and never shorter. `None` when it is on a disk, where a page may have to be waited
    /// for, or when there is no room for it among the addresses: reading and writing the file does the same.
    pub(crate) fn of_memory(file: &File, len: u64, writable: bool) -> Option<Self> {
        let on = rustix::fs::fstatfs(file).ok()?;
        let len = usize::try_from(len).ok()?;
        if u64::try_from(on.f_type) != Ok(TMPFS_MAGIC) {
            return None;
        }
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else is there.
        let start = unsafe { mmap(null_mut(), len, protection, MapFlags::SHARED, file, 0) }.ok()?;
        Some(Self { start: NonNull::new(start.cast())?, len })
    }

    /// `len` bytes of zeros, in large pages where the kernel has them; addresses only, until they are written or populated. `None`
    /// when the machine has not so much.
    pub(crate) fn new(len: usize) -> Option<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else is there.
        let start =
            unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }.ok()?;
        // SAFETY: the range is the mapping's; what it holds stays.
        let _ = unsafe { madvise(start, len, Advice::LinuxHugepage) };
        Some(Self { start: NonNull::new(start.cast())?, len })
    }

    /// Whether the range is mapped: a file may have grown since.
    pub(crate) fn has(&self, offset: u64, len: usize) -> bool {
        usize::try_from(offset).ok().and_then(|first| first.checked_add(len)).is_some_and(|end| end <= self.len)
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let from = self.at(offset, buffer.len())?;
        // SAFETY: `at` has checked the range, and the buffer is not in it: no reference into a mapping is given out.
        unsafe { std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), buffer.len()) };
        Ok(())
    }

    /// Only where the file has memory already: for a new page there may be none left, and that would be a signal and not
    /// an error.
    pub(crate) fn overwrite(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let to = self.at(offset, buffer.len())?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(buffer.as_ptr(), to, buffer.len()) };
        Ok(())
    }

    /// As [`Self::overwrite`], past the caches where the processor can: for what is not read soon.
    pub(crate) fn stream(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let to = self.at(offset, buffer.len())?;
        // SAFETY: as above.
        unsafe { copy_past_caches(buffer, to) };
        Ok(())
    }

    /// Has the kernel enter a range that has memory into the page table, all at once: else the first copy to each page is interrupted
    /// for that. A kernel before 5.14 cannot, and then that is how it is.
    pub(crate) fn populate(&self, offset: u64, len: usize) {
        let page = rustix::param::page_size();
        let before = usize::try_from(offset).unwrap_or(0) % page;
        let Ok(from) = self.at(offset, len) else { return };
        // SAFETY: the pages of the range are in the mapping, which begins with a page; they keep what they have.
        let _ = unsafe { madvise(from.sub(before).cast::<c_void>(), before + len, Advice::LinuxPopulateWrite) };
    }

    fn at(&self, offset: u64, len: usize) -> io::Result<*mut u8> {
        let first =
            usize::try_from(offset).ok().filter(|first| first.checked_add(len).is_some_and(|end| end <= self.len));
        let first = first.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        // SAFETY: within the mapping, by the check above.
        Ok(unsafe { self.start.as_ptr().add(first) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and there is no reference into it.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
    }
}

/// # Safety
/// There is room for all of `from` at `to`, and none of it is in `from`.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_past_caches(from: &[u8], to: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let (before, rest) = from.split_at(to.align_offset(align_of::<__m128i>()).min(from.len()));
    let (whole, after) = rest.as_chunks::<{ size_of::<__m128i>() }>();
    // SAFETY: the three parts are written where they are in the whole; a stream's target is aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(before.as_ptr(), to, before.len());
        let mut to = to.add(before.len());
        for one in whole {
            _mm_stream_si128(to.cast(), _mm_loadu_si128(one.as_ptr().cast()));
            to = to.add(one.len());
        }
        std::ptr::copy_nonoverlapping(after.as_ptr(), to, after.len());
        // Streams are in no order with what other threads are told next.
        _mm_sfence();
    }
}

/// # Safety
/// There is room for all of `from` at `to`, and none of it is in `from`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_past_caches(from: &[u8], to: *mut u8) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
}
