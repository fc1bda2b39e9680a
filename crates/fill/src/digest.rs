//! A digest of the rows that were sent. Equal rows have equal digests, in whatever order and by however many sessions they were sent.

use std::ops::AddAssign;

// Odd numbers without a pattern: any would do.
const LENGTH: u64 = 0x9e37_79b9_7f4a_7c15;
const WORD: u64 = 0xd6e8_feb8_6659_fd93;
const LAST: u64 = 0xbf58_476d_1ce4_e5b9;

/// Rows that were sent: their number and their digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// How many.
    pub rows: u64,
    /// The sum of the digests of all.
    pub digest: u64,
}

impl Sent {
    /// The rows of a text, each a line with its end.
    pub(crate) fn of(rows: u64, text: &[u8]) -> Self {
        let (mut digest, mut begin) = (0_u64, 0);
        for end in memchr::memchr_iter(b'\n', text) {
            digest = digest.wrapping_add(of_row(&text[begin..end]));
            begin = end + 1;
        }
        Self { rows, digest }
    }
}

impl AddAssign for Sent {
    fn add_assign(&mut self, more: Self) {
        self.rows += more.rows;
        self.digest = self.digest.wrapping_add(more.digest);
    }
}

/// It finds rows that differ by mistake; whoever wanted to could make two that have the same.
fn of_row(row: &[u8]) -> u64 {
    let mut state = folded(row.len() as u64 ^ LENGTH, WORD);
    let mut words = row.chunks_exact(8);
    for word in &mut words {
        state = folded(state ^ u64::from_le_bytes(word.try_into().expect("eight bytes")), WORD);
    }
    let (rest, mut last) = (words.remainder(), [0; 8]);
    last[..rest.len()].copy_from_slice(rest);
    folded(state ^ u64::from_le_bytes(last), LAST)
}

/// Both halves of a product: every bit of it depends on every bit of `one`.
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u64 {
        Sent::of(0, text.as_bytes()).digest
    }

    #[test]
    fn order_and_parts_do_not_matter() {
        let whole = Sent::of(3, b"1\tone\n2\ttwo\n3\tthree\n");
        let mut parts = Sent::of(1, b"3\tthree\n");
        parts += Sent::of(2, b"2\ttwo\n1\tone\n");
        assert_eq!(parts, whole);
    }

    #[test]
    fn rows_that_differ_anywhere_have_another() {
        let row = "12345678\tabcdefgh\t0\n";
        let mut seen = vec![digest(row)];
        for at in 0..row.len() - 1 {
            let mut other = row.to_owned();
            other.replace_range(at..=at, "x");
            seen.push(digest(&other));
        }
        seen.extend([
            digest("12345678\tabcdefgh\t00\n"),
            digest(&row[1..]),
            digest(&format!("{row}{row}")),
            digest(""),
        ]);
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
