//! The file system on the ring: the same file as in [`crate::fs`], by the same rules.

use fuser::{Errno, FileType, FopenFlags, INodeNo};
use pgdyno_volume::Op;

use super::abi::{Attr, AttrOut, Dirent, EntryOut, FallocateIn, OpenOut, StatfsOut, TransferIn, bytes_of, opcode};
use super::entries::{RingReply, RingRequest};
use crate::fs::{Admission, ENTRIES, Exported, FILE, FILE_NAME, open_flags};
use crate::pipeline::Payload;

/// Serves one request.
pub(crate) fn serve(exported: &Exported, request: RingRequest) {
    let node = INodeNo(request.header.nodeid);
    match request.header.opcode {
        opcode::READ => transfer(exported, Op::Read, request),
        opcode::WRITE => transfer(exported, Op::Write, request),
        opcode::LOOKUP if node == INodeNo::ROOT && request.name() == FILE_NAME.as_bytes() => {
            let (nodeid, attr) = (FILE.0, attr(exported, FILE));
            // It is asked for again each time: the file grows.
            request.reply.plain(&EntryOut {
                nodeid,
                generation: 0,
                entry_valid: 0,
                attr_valid: 0,
                entry_valid_nsec: 0,
                attr_valid_nsec: 0,
                attr,
            });
        }
        opcode::LOOKUP => request.reply.error(Errno::ENOENT),
        opcode::GETATTR => {
            let attr = attr(exported, node);
            request.reply.plain(&AttrOut { attr_valid: 0, attr_valid_nsec: 0, dummy: 0, attr });
        }
        opcode::OPEN if node == FILE => opened(request.reply, open_flags()),
        opcode::OPEN => request.reply.error(Errno::EISDIR),
        opcode::OPENDIR => opened(request.reply, FopenFlags::empty()),
        opcode::READDIR => read_directory(node, request),
        opcode::FSYNC => {
            exported.pipeline.flushed();
            request.reply.bytes(&[]);
        }
        opcode::FALLOCATE => {
            let FallocateIn { offset, length, mode, .. } = request.of_operation();
            match exported.zero(offset, length, mode as i32) {
                Ok(()) => request.reply.bytes(&[]),
                Err(error) => request.reply.error(error),
            }
        }
        opcode::STATFS => request.reply.plain(&StatfsOut {
            blocks: 0,
            bfree: 0,
            bavail: 0,
            files: 0,
            ffree: 0,
            bsize: 512,
            namelen: 255,
            frsize: 0,
            padding: 0,
            spare: [0; 6],
        }),
        opcode::FLUSH | opcode::RELEASE | opcode::RELEASEDIR | opcode::FSYNCDIR | opcode::DESTROY => {
            request.reply.bytes(&[]);
        }
        _ => request.reply.error(Errno::ENOSYS),
    }
}

fn transfer(exported: &Exported, op: Op, request: RingRequest) {
    let TransferIn { offset, size, .. } = request.of_operation();
    match exported.admit(op, offset, size) {
        Admission::Admitted => exported.pipeline.submit(offset, Payload::Ring(request.reply.transfer(op, size))),
        Admission::PastTheEnd => request.reply.bytes(&[]),
        Admission::Refused => request.reply.error(Errno::EINVAL),
    }
}

fn opened(reply: RingReply, flags: FopenFlags) {
    reply.plain(&OpenOut { fh: 0, open_flags: flags.bits(), backing_id: 0 });
}

fn attr(exported: &Exported, node: INodeNo) -> Attr {
    let is = exported.attr(node);
    Attr {
        ino: node.0,
        size: is.size,
        blocks: is.blocks,
        atime: 0,
        mtime: 0,
        ctime: 0,
        atimensec: 0,
        mtimensec: 0,
        ctimensec: 0,
        mode: kind_bits(is.kind) | u32::from(is.perm),
        nlink: is.nlink,
        uid: is.uid,
        gid: is.gid,
        rdev: is.rdev,
        blksize: is.blksize,
        flags: 0,
    }
}

fn kind_bits(kind: FileType) -> u32 {
    if kind == FileType::RegularFile { libc::S_IFREG } else { libc::S_IFDIR }
}

fn read_directory(node: INodeNo, request: RingRequest) {
    let TransferIn { offset, size, .. } = request.of_operation();
    let (mut reply, room) = (request.reply, size as usize);
    let mut end = 0;
    for (place, (ino, kind, name)) in (1..).zip(ENTRIES).skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
        let dirent =
            Dirent { ino: ino.unwrap_or(node).0, off: place, namelen: name.len() as u32, kind: kind_bits(kind) >> 12 };
        let payload = reply.payload();
        let bytes = (size_of::<Dirent>() + name.len()).next_multiple_of(8);
        if end + bytes > room.min(payload.len()) {
            break;
        }
        let entry = &mut payload[end..end + bytes];
        entry.fill(0);
        entry[..size_of::<Dirent>()].copy_from_slice(bytes_of(&dirent));
        entry[size_of::<Dirent>()..][..name.len()].copy_from_slice(name.as_bytes());
        end += bytes;
    }
    reply.transfer(Op::Read, end as u32).done();
}
