//! What the kernel and the daemon tell each other in memory: `linux/fuse.h`, protocol 7.45 (Linux 6.18).
//!
//! Only what the one exported file needs. Numbers are those of the machine itself.

use std::mem::size_of;

/// `FUSE_IO_URING_CMD_REGISTER`: an entry is there for requests.
pub(crate) const REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`: an entry has an answer, and is there for the next request.
pub(crate) const COMMIT_AND_FETCH: u32 = 2;

/// `enum fuse_opcode`.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const FALLOCATE: u32 = 43;
}

/// Made of numbers alone, without a hole: any bytes are one, and it is its bytes.
///
/// # Safety
/// The type has `repr(C)`, no padding, and no value that is invalid.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        #[allow(dead_code, reason = "the kernel's half of a structure is there for its place")]
        pub(crate) struct $name { $(pub(crate) $field: $type),+ }
        // SAFETY: the tests compare its size with the sum of its fields, which are numbers.
        unsafe impl Plain for $name {}
        impl $name {
            #[cfg(test)]
            const FIELDS_BYTES: usize = 0 $(+ size_of::<$type>())+;
        }
    )+};
}

plain! {
    /// `struct fuse_in_header`.
    InHeader {
        len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32, total_extlen: u16, padding: u16,
    }
    /// `struct fuse_out_header`.
    OutHeader { len: u32, error: i32, unique: u64 }
    /// `struct fuse_read_in` and `struct fuse_write_in`, which are alike.
    TransferIn { fh: u64, offset: u64, size: u32, kind_flags: u32, lock_owner: u64, flags: u32, padding: u32 }
    /// `struct fuse_fallocate_in`.
    FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    /// `struct fuse_write_out`.
    WriteOut { size: u32, padding: u32 }
    /// `struct fuse_open_out`.
    OpenOut { fh: u64, open_flags: u32, backing_id: i32 }
    /// `struct fuse_attr`.
    Attr {
        ino: u64, size: u64, blocks: u64, atime: u64, mtime: u64, ctime: u64, atimensec: u32, mtimensec: u32,
        ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32,
    }
    /// `struct fuse_attr_out`.
    AttrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr }
    /// `struct fuse_entry_out`.
    EntryOut {
        nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32, attr_valid_nsec: u32,
        attr: Attr,
    }
    /// `struct fuse_statfs_out`.
    StatfsOut {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32, frsize: u32,
        padding: u32, spare: [u32; 6],
    }
    /// The fixed part of `struct fuse_dirent`.
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32 }
    /// `struct fuse_uring_ent_in_out`.
    EntryInOut { flags: u64, commit_id: u64, payload_sz: u32, padding: u32, reserved: u64 }
    /// `struct fuse_uring_req_header`: the kernel's header and then the answer's, what is particular to the operation, and
    /// which request it is.
    RequestHeader { in_out: [u64; 16], op_in: [u64; 16], entry: EntryInOut }
    /// `struct fuse_uring_cmd_req`: what an entry of the ring says of one of FUSE.
    CommandRequest { flags: u64, commit_id: u64, qid: u16, padding: [u8; 6] }
}

/// The bytes of a structure.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a plain structure has no padding, so every byte of it is initialized.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A structure at the beginning of an area of the request's header.
pub(crate) fn from_area<T: Plain>(area: &[u64; 16]) -> T {
    const { assert!(size_of::<T>() <= size_of::<[u64; 16]>()) };
    // SAFETY: the area is as large, aligned for 64 bits, and any bytes are a plain structure.
    unsafe { std::ptr::from_ref(area).cast::<T>().read() }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// Sizes and places as a C compiler has them for `linux/fuse.h` of Linux 6.18.
    #[test]
    fn structures_are_where_the_kernel_has_them() {
        macro_rules! sizes {
            ($($name:ident: $bytes:expr),+ $(,)?) => {$(
                assert_eq!(size_of::<$name>(), $bytes, stringify!($name));
                assert_eq!($name::FIELDS_BYTES, $bytes, concat!(stringify!($name), " has a hole"));
            )+};
        }
        sizes! {
            InHeader: 40, OutHeader: 16, TransferIn: 40, FallocateIn: 32, WriteOut: 8, OpenOut: 16, Attr: 88, AttrOut: 104,
            EntryOut: 128, StatfsOut: 80, Dirent: 24, EntryInOut: 32, RequestHeader: 288, CommandRequest: 24,
        }
        assert_eq!([offset_of!(RequestHeader, op_in), offset_of!(RequestHeader, entry)], [128, 256]);
        assert_eq!([offset_of!(EntryInOut, commit_id), offset_of!(EntryInOut, payload_sz)], [8, 16]);
        assert_eq!([offset_of!(CommandRequest, commit_id), offset_of!(CommandRequest, qid)], [8, 16]);
        assert_eq!([offset_of!(TransferIn, offset), offset_of!(TransferIn, size)], [8, 16]);
        assert_eq!([offset_of!(Attr, mode), offset_of!(Attr, blksize)], [60, 80]);
        assert_eq!(
            [offset_of!(InHeader, opcode), offset_of!(InHeader, unique), offset_of!(InHeader, nodeid)],
            [4, 8, 16]
        );
    }
}
