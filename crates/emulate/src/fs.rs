//! The FUSE file system: one folder with one file, `volume`.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};

use pgdyno_volume::Op;

use crate::command::Command;
use crate::pipeline::{Payload, Pipeline};
use crate::slots::SLOTS;
use crate::store::BLOCK_BYTES;

/// Name of the exported file.
pub(crate) const FILE_NAME: &str = "volume";
/// `statfs` of a FUSE mount (`linux/magic.h`).
pub(crate) const FUSE_MAGIC: u64 = 0x6573_5546;
/// The file grows when the volume is modified, so its size is asked for; requests for data do not ask.
const ASK_AGAIN: Duration = Duration::ZERO;
/// Slots of requests that are answered and not counted yet: a batch of the release thread, one of each worker.
const ANSWERED: usize = 64;
/// Above the loop device's 128; the default of 12 would cap the queue depth. The kernel keeps the rest back, so that no event loop waits
/// for a slot.
const MAX_BACKGROUND: u16 = (SLOTS - ANSWERED) as u16;
/// The exported file.
pub(crate) const FILE: INodeNo = INodeNo(2);

/// What its folder has, and the node of each: `None` is the folder itself.
pub(crate) const ENTRIES: [(Option<INodeNo>, FileType, &str); 3] = [
    (None, FileType::Directory, "."),
    (None, FileType::Directory, ".."),
    (Some(FILE), FileType::RegularFile, FILE_NAME),
];

/// How the file is opened. No flush when it is closed (Linux 5.16): a daemon that is killed while it has its own file open, as when it
/// configures the loop device, would wait for its own answer for ever.
pub(crate) fn open_flags() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH
}

/// Whether a transfer may be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Whole blocks inside the volume, and no more than a buffer holds.
    Admitted,
    /// A read that begins behind the end: there is nothing.
    PastTheEnd,
    Refused,
}

/// The file: what is the same however requests for it arrive.
#[derive(Debug)]
pub(crate) struct Exported {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) request_bytes: u32,
}

impl Exported {
    pub(crate) fn attr(&self, ino: INodeNo) -> FileAttr {
        let file = ino == FILE;
        FileAttr {
            ino,
            size: if file { self.pipeline.size_bytes() } else { 0 },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if file { FileType::RegularFile } else { FileType::Directory },
            perm: if file { 0o600 } else { 0o500 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK_BYTES as u32,
            flags: 0,
        }
    }

    pub(crate) fn admit(&self, op: Op, offset: u64, len: u32) -> Admission {
        if op == Op::Read && offset >= self.pipeline.size_bytes() {
            Admission::PastTheEnd
        } else if len > self.request_bytes || !self.fits(offset, u64::from(len)) {
            Admission::Refused
        } else {
            Admission::Admitted
        }
    }

    /// Discards and zero-outs of the loop device: both leave zeros.
    pub(crate) fn zero(&self, offset: u64, len: u64, mode: i32) -> Result<(), Errno> {
        let zeroing = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        if !zeroing || !self.fits(offset, len) {
            return Err(Errno::EOPNOTSUPP);
        }
        self.pipeline.zero(offset, len).map_err(|_| Errno::EIO)
    }

    /// Whole blocks inside the volume.
    fn fits(&self, offset: u64, len: u64) -> bool {
        let whole = offset.is_multiple_of(BLOCK_BYTES) && len.is_multiple_of(BLOCK_BYTES);
        whole && offset.checked_add(len).is_some_and(|end| end <= self.pipeline.size_bytes())
    }
}

/// The file system of one session.
pub(crate) struct VolumeFs {
    exported: Arc<Exported>,
    commands: Sender<Command>,
    /// What is said when the session ends.
    ended: Option<Command>,
}

impl VolumeFs {
    pub(crate) fn new(exported: Arc<Exported>, commands: Sender<Command>, ended: Command) -> Self {
        Self { exported, commands, ended: Some(ended) }
    }
}

impl Filesystem for VolumeFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let missing = |flags: InitFlags| io::Error::other(format!("this kernel's FUSE lacks {flags:?}"));
        // Without these, direct I/O is served one request at a time.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES).map_err(missing)?;
        config.set_max_write(self.exported.request_bytes).map_err(|_| io::Error::other("max_write"))?;
        config.set_max_background(MAX_BACKGROUND).map_err(|_| io::Error::other("max_background"))?;
        config.set_congestion_threshold(MAX_BACKGROUND).map_err(|_| io::Error::other("congestion_threshold"))?;
        Ok(())
    }

    /// Another process unmounted the file system, or this one did: the main thread finds out which.
    fn destroy(&mut self) {
        if let Some(ended) = self.ended.take() {
            let _ = self.commands.send(ended);
        }
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE_NAME {
            reply.entry(&ASK_AGAIN, &self.exported.attr(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ASK_AGAIN, &self.exported.attr(ino));
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if ino == FILE {
            reply.opened(FileHandle(0), open_flags());
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.exported.admit(Op::Read, offset, size) {
            Admission::Admitted => self.exported.pipeline.submit(offset, Payload::Read(reply, size)),
            Admission::PastTheEnd => reply.data(&[]),
            Admission::Refused => {
                self.exported.pipeline.refused();
                reply.error(Errno::EINVAL);
            }
        }
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.exported.admit(Op::Write, offset, u32::try_from(data.len()).unwrap_or(u32::MAX)) {
            Admission::Admitted => self.exported.pipeline.submit(offset, Payload::Write(reply, data)),
            _ => {
                self.exported.pipeline.refused();
                reply.error(Errno::EINVAL);
            }
        }
    }

    fn flush(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    /// Durability is paid for in the write (docs/decision/0004); a delayed answer here would block other writes.
    fn fsync(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.exported.pipeline.flushed();
        reply.ok();
    }

    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match self.exported.zero(offset, length, mode) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        for (i, (node, kind, name)) in ENTRIES.into_iter().enumerate().skip(offset as usize) {
            if reply.add(node.unwrap_or(ino), i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
