//! Values that a server may have given: whole numbers and uuids.

use std::ops::Range;

use pgdyno_capture::{Call, Protocol};

use super::literals::literals;

/// The keys of one sequence, by its number in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Family(pub u32);

/// A value that may be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Value {
    /// A whole number above zero.
    Number(u64),
    /// In its 128 bits.
    Uuid(u128),
}

/// A value that a server gave. Two sequences may give the same number: it is two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    Number(Family, u64),
    Uuid(u128),
}

impl Key {
    /// The value, as it stands in statements.
    pub(crate) fn value(self) -> Value {
        match self {
            Self::Number(_, number) => Value::Number(number),
            Self::Uuid(uuid) => Value::Uuid(uuid),
        }
    }
}

impl Value {
    /// The value that a text is, as PostgreSQL writes it; none of others.
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

fn uuid(bytes: &[u8]) -> Option<Value> {
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
    Some(Value::Uuid(number))
}

/// Where a statement has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A parameter, from 0.
    Parameter(usize),
    /// Bytes of a parameter that is an array.
    Element(usize, Range<usize>),
    /// Bytes of the text.
    Text(Range<usize>),
}

impl Place {
    /// Puts a value there. Places of one call are filled from behind, so that those before stay where they are.
    pub(crate) fn fill(&self, call: &mut Call, value: &str) {
        match self {
            Self::Parameter(number) => call.values[*number] = Some(value.to_owned()),
            Self::Element(number, range) => {
                if let Some(array) = &mut call.values[*number] {
                    array.replace_range(range.clone(), value);
                }
            }
            Self::Text(range) => call.text.replace_range(range.clone(), value),
        }
    }
}

/// Where a value stands in all statements of one text: a parameter, or one of the literals in their order, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Slot {
    Parameter(usize),
    Literal(usize),
}

/// How a value is written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The value and nothing else, or an element of an array.
    Whole,
    /// Somewhere in a JSON document.
    Within,
}

/// Passes the values of a call that may be keys, in their order, to `each`: whole parameters, whole literals of a text, elements of arrays, and numbers in JSON.
pub(crate) fn values_of(call: &Call, mut each: impl FnMut(Place, Slot, Value, Form)) {
    for (number, value) in call.values.iter().enumerate() {
        if let Some(value) = value.as_deref() {
            parts(value, |range, one, form| {
                let is_all = range.len() == value.len();
                let place = if is_all { Place::Parameter(number) } else { Place::Element(number, range) };
                each(place, Slot::Parameter(number), one, form);
            });
        }
    }
    if call.protocol == Protocol::Text {
        let mut order = 0;
        literals(&call.text, |literal| {
            parts(&call.text[literal.clone()], |range, one, form| {
                let range = literal.start + range.start..literal.start + range.end;
                each(Place::Text(range), Slot::Literal(order), one, form);
            });
            order += 1;
        });
    }
}

/// The values of one parameter or literal, with their bytes.
fn parts(text: &str, mut each: impl FnMut(Range<usize>, Value, Form)) {
    if let Some(value) = Value::of(text) {
        return each(0..text.len(), value, Form::Whole);
    }
    let bytes = text.as_bytes();
    let form = match (bytes.first(), bytes.last()) {
        (Some(b'{'), Some(b'}')) if is_array(bytes) => Form::Whole,
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => Form::Within,
        _ => return,
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'+') || byte >= 0x80;
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        if let Some(value) = Value::of(&text[at..end]) {
            each(at..end, value, form);
        }
        at = end.max(at + 1);
    }
}

/// Whether a text is an array of whole numbers or uuids as PostgreSQL writes it: `{1,2}`.
fn is_array(bytes: &[u8]) -> bool {
    bytes[1..bytes.len() - 1].iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b',' | b'-'))
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Ending;

    use super::*;
    use crate::testing::call;

    const UUID: &str = "0af7651c-1234-4321-8b6d-a1b2c3d4e5f6";

    #[test]
    fn a_key_is_a_whole_value_as_the_server_writes_it() {
        assert_eq!(Value::of("1500001"), Some(Value::Number(1_500_001)));
        assert_eq!(Value::of(UUID), Some(Value::Uuid(0x0af7_651c_1234_4321_8b6d_a1b2_c3d4_e5f6)));
        for other in ["", "0", "007", "-5", "1.5", "12a", "99999999999999999999", &UUID.to_uppercase(), &UUID[1..]] {
            assert_eq!(Value::of(other), None, "{other}");
        }
    }

    fn found(text: &str) -> Vec<(Slot, u64, Form)> {
        let mut found = Vec::new();
        values_of(&call(text, Ending::Done(1)), |_, slot, value, form| {
            if let Value::Number(number) = value {
                found.push((slot, number, form));
            }
        });
        found
    }

    #[test]
    fn places_are_counted_whatever_stands_there() {
        let (first, third) = (Slot::Literal(0), Slot::Literal(2));
        assert_eq!(found("SELECT 5, 0, 7"), [(first, 5, Form::Whole), (third, 7, Form::Whole)]);
        assert_eq!(found("SELECT 5, 'x', 7"), [(first, 5, Form::Whole), (third, 7, Form::Whole)]);
    }

    #[test]
    fn elements_of_arrays_are_values_and_numbers_in_documents_are_noted() {
        let slot = Slot::Literal(0);
        assert_eq!(found("SELECT '{17,4}'"), [(slot, 17, Form::Whole), (slot, 4, Form::Whole)]);
        assert_eq!(found(r#"SELECT '{"order": 17, "on": "2026-11-28", "x": 1.5}'"#), [(slot, 17, Form::Within)]);
        for text in ["SELECT '{'", "SELECT '{}'", "SELECT '[]'", "SELECT '2026-11-28'", "SELECT '17 Main St'"] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn a_place_is_filled_and_the_rest_stays() {
        let mut sent = call("UPDATE t SET a = 3 WHERE id = ANY('{17,18}')", Ending::Done(1));
        sent.values = vec![Some("{1,22}".to_owned())];
        let mut places = Vec::new();
        values_of(&sent.clone(), |place, _, _, _| places.push(place));
        for place in places.iter().rev() {
            place.fill(&mut sent, "500");
        }
        assert_eq!(sent.text, "UPDATE t SET a = 500 WHERE id = ANY('{500,500}')");
        assert_eq!(sent.values, [Some("{500,500}".to_owned())]);
    }
}
