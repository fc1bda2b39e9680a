//! Values that a server may have given: whole numbers and uuids.

use std::ops::Range;

use pgdyno_capture::{Call, Protocol};

use super::literals::literals;

/// A value that may be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A whole number above zero.
    Number(u64),
    /// In its 128 bits.
    Uuid(u128),
}

impl Key {
    /// The key that a text is, as PostgreSQL writes it; none of other values.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        match bytes.first()? {
            b'1'..=b'9' if bytes.len() < 20 && bytes.iter().all(u8::is_ascii_digit) => {
                text.parse().ok().map(Self::Number)
            }
            _ if bytes.len() == 36 => uuid(bytes),
            _ => None,
        }
    }
}

fn uuid(bytes: &[u8]) -> Option<Key> {
    let mut number = 0_u128;
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 8 | 13 | 18 | 23) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(Key::Uuid(number))
}

/// Where a statement has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A parameter, from 0.
    Parameter(usize),
    /// Bytes of the text.
    Text(Range<usize>),
}

/// Passes the keys of a call, in their order, to `each`: those that are whole parameters, or whole literals of a text.
pub(crate) fn keys_of(call: &Call, mut each: impl FnMut(Place, Key)) {
    for (number, value) in call.values.iter().enumerate() {
        if let Some(key) = value.as_deref().and_then(Key::of) {
            each(Place::Parameter(number), key);
        }
    }
    if call.protocol == Protocol::Text {
        literals(&call.text, |range| {
            if let Some(key) = Key::of(&call.text[range.clone()]) {
                each(Place::Text(range), key);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_whole_value_as_the_server_writes_it() {
        assert_eq!(Key::of("1500001"), Some(Key::Number(1_500_001)));
        let uuid = "0af7651c-1234-4321-8b6d-a1b2c3d4e5f6";
        assert_eq!(Key::of(uuid), Some(Key::Uuid(0x0af7_651c_1234_4321_8b6d_a1b2_c3d4_e5f6)));
        for other in ["", "0", "007", "-5", "1.5", "12a", "99999999999999999999", &uuid.to_uppercase(), &uuid[1..]] {
            assert_eq!(Key::of(other), None, "{other}");
        }
    }
}
