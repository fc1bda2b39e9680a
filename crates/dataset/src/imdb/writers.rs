//! Values as the files have them.

use pgdyno_workload::write_integer;

pub(super) fn write_null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\N");
}

pub(super) fn write_count(count: u32, out: &mut Vec<u8>) {
    write_integer(i64::from(count), out);
}
