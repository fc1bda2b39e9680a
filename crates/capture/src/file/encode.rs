//! Calls as blocks have them.

use super::{ANSWER, CUT, DONE, FAILED, INLINE, Last, MORE, NAMED, ROWS, UNNAMED, WITHOUT_VALUES};
use crate::call::{Call, Ending, Protocol};

/// What a call takes in a block or in the table of texts, at most.
pub(super) fn bytes_of(call: &Call) -> usize {
    let values: usize = call.values.iter().flatten().map(String::len).sum();
    let answer: usize = call.answer.iter().map(|(name, value)| name.len() + value.len()).sum();
    let numbers = 16 + call.values.len() + call.answer.len() + call.rows.as_ref().map_or(0, Vec::len);
    call.text.len() + call.name.len() + values + answer + 10 * numbers
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Puts a call behind those of its session, with the number of its text if that is in the table.
pub(super) fn encode(call: &Call, text: Option<u32>, last: &mut Last, out: &mut Vec<u8>) {
    let mut flags = match call.protocol {
        Protocol::Text => 0,
        Protocol::Unnamed => UNNAMED,
        Protocol::Named => NAMED,
    };
    flags |= match call.ending {
        Ending::Unknown => 0,
        Ending::Done(_) => DONE,
        Ending::Failed(_) => FAILED,
    };
    let more = [(ROWS, call.rows.is_some()), (ANSWER, !call.answer.is_empty())];
    let more = more.into_iter().fold(0, |bits, (bit, set)| if set { bits | bit } else { bits });
    let facts = [(WITHOUT_VALUES, call.without_values), (CUT, call.cut), (INLINE, text.is_none()), (MORE, more != 0)];
    for (bit, set) in facts {
        flags |= if set { bit } else { 0 };
    }
    out.push(flags);
    let delta = call.due_us.wrapping_sub(last.due_us);
    put(out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
    put(out, u64::from(call.transaction.wrapping_sub(last.transaction)));
    *last = Last { due_us: call.due_us, transaction: call.transaction };
    match text {
        Some(number) => put(out, u64::from(number)),
        None => put_bytes(out, call.text.as_bytes()),
    }
    match call.ending {
        Ending::Unknown => (),
        Ending::Done(us) => put(out, us),
        Ending::Failed(state) => out.extend_from_slice(&state),
    }
    if call.protocol == Protocol::Named {
        put_bytes(out, call.name.as_bytes());
    }
    if call.protocol != Protocol::Text {
        put(out, call.values.len() as u64);
        for value in &call.values {
            match value {
                None => put(out, 0),
                Some(value) => {
                    put(out, value.len() as u64 + 1);
                    out.extend_from_slice(value.as_bytes());
                }
            }
        }
    }
    if more != 0 {
        out.push(more);
    }
    if let Some(rows) = &call.rows {
        put(out, rows.len() as u64);
        let mut before = 0;
        for at in rows {
            put(out, at.saturating_sub(before));
            before = *at;
        }
    }
    if !call.answer.is_empty() {
        put(out, call.answer.len() as u64);
        for (name, value) in &call.answer {
            put_bytes(out, name.as_bytes());
            put_bytes(out, value.as_bytes());
        }
    }
}
