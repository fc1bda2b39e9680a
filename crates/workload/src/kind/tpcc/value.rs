//! Values in statements and answers.

use crate::program::Reply;
use crate::template::write_integer;

/// Appends an amount of cents, 0 or more, as a number with two places.
pub(crate) fn write_cents(cents: i64, out: &mut Vec<u8>) {
    write_integer(cents / 100, out);
    out.extend_from_slice(&[b'.', b'0' + (cents / 10 % 10) as u8, b'0' + (cents % 10) as u8]);
}

/// The value in a place of the last row, as text; nothing without a row, and of NULL.
pub(crate) fn place(reply: Reply<'_>, place: usize) -> Option<&[u8]> {
    reply?.sets().first()?.last_row().nth(place)?.1
}

/// The first one.
pub(crate) fn first(reply: Reply<'_>) -> Option<&[u8]> {
    place(reply, 0)
}

/// The first one as a whole number.
pub(crate) fn first_number(reply: Reply<'_>) -> Option<i64> {
    std::str::from_utf8(first(reply)?).ok()?.parse().ok()
}

/// Cents of a number with two places.
pub(crate) fn cents(text: &[u8]) -> Option<i64> {
    let (whole, places) = std::str::from_utf8(text).ok()?.split_once('.')?;
    Some(whole.parse::<i64>().ok()? * 100 + places.parse::<i64>().ok().filter(|_| places.len() == 2)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_comes_back_as_it_was_written() {
        for amount in [0, 7, 99, 100, 123_456] {
            let mut out = Vec::new();
            write_cents(amount, &mut out);
            assert_eq!(cents(&out), Some(amount), "{}", String::from_utf8_lossy(&out));
        }
        assert_eq!((cents(b"1"), cents(b"1.5"), cents(b"x.50")), (None, None, None));
    }
}
