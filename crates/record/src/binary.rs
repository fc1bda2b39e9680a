//! Values in binary as the texts that PostgreSQL reads: what `…send` of a type makes (`src/backend/utils/adt`).
//!
//! A replay sends values as text, as logs have them. The bytes are a client's, so that no count in them is believed: nothing here takes more time or
//! memory than [`Room`] says, and what no server would accept is not decoded.

use std::fmt::Write;

use crate::messages::Fields;

/// Days from 1970 to 2000, from where PostgreSQL counts.
const EPOCH_DAYS: i64 = 10_957;
const DAY_US: i64 = 86_400_000_000;
/// Days since 2000 that a date may have, and microseconds since 2000 that a timestamp may have (`datatype/timestamp.h`).
const DAYS: std::ops::Range<i64> = -2_451_545..2_145_031_949;
const INSTANTS_US: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// Digits of a numeric are of this base.
const DIGIT: i64 = 10_000;
/// More decimal places than a numeric may have (`NUMERIC_DSCALE_MASK`).
const SCALE_MAX: usize = 0x3FFF;
/// More dimensions than an array may have (`MAXDIM`).
const DIMENSIONS_MAX: usize = 6;
/// More elements than an array may have (`MaxArraySize`).
const ELEMENTS_MAX: usize = 0x3FFF_FFFF / 8;
/// What an element takes at least: its length.
const ELEMENT_BYTES: usize = 4;
/// Beyond and below these a float is written with an exponent: all digits of 1e308 would be 309.
const FLOAT_PLAIN: std::ops::Range<f64> = 1e-5..1e16;
/// Types whose binary form is an array's, with the type of their elements.
const ARRAYS: [(u32, u32); 20] = [
    (199, 114),
    (1000, 16),
    (1001, 17),
    (1002, 18),
    (1003, 19),
    (1005, 21),
    (1007, 23),
    (1009, 25),
    (1014, 1042),
    (1015, 1043),
    (1016, 20),
    (1021, 700),
    (1022, 701),
    (1028, 26),
    (1115, 1114),
    (1182, 1082),
    (1185, 1184),
    (1231, 1700),
    (2951, 2950),
    (3807, 3802),
];

/// How many bytes the texts of a message may still take. A few bytes may stand for a text of 131 KB (a numeric), and an array has many of them.
pub(crate) struct Room(usize);

impl Room {
    /// Texts of this many bytes fit into any message.
    const LEAST_BYTES: usize = 1 << 20;
    /// A message's texts take at most this many times its bytes, beyond that: those of usual values take less than four.
    const TIMES: usize = 16;
    /// And never more than this.
    const MOST_BYTES: usize = 64 << 20;

    /// For the values of a message of this length.
    pub(crate) fn of(message_bytes: usize) -> Self {
        Self((Self::LEAST_BYTES + Self::TIMES.saturating_mul(message_bytes)).min(Self::MOST_BYTES))
    }

    /// Takes room for so many bytes. None if there is not so much.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// The text of a value of a type (`pg_type.oid`). None if the type is not known here, the value not its, or there is no room for its text.
pub(crate) fn text_of(oid: u32, bytes: &[u8], room: &mut Room) -> Option<String> {
    match ARRAYS.iter().find(|(array, _)| *array == oid) {
        Some((_, element)) => array(*element, bytes, room),
        None => {
            let text = scalar(oid, bytes, room)?;
            room.take(text.len())?;
            Some(text)
        }
    }
}

/// The text of a value that is no array.
fn scalar(oid: u32, bytes: &[u8], room: &Room) -> Option<String> {
    let mut fields = Fields::of(bytes);
    let text = match oid {
        16 => (if fields.byte()? == 0 { "f" } else { "t" }).to_owned(),
        17 => return (bytes.len() < room.0 / 2).then(|| hexadecimal("\\x", bytes)),
        20 => fields.i64()?.to_string(),
        21 => fields.i16()?.to_string(),
        23 => fields.i32()?.to_string(),
        26 | 2205 => fields.u32()?.to_string(),
        18 | 19 | 25 | 114 | 142 | 705 | 1042 | 1043 => return own(bytes),
        3802 => return (fields.byte()? == 1).then(|| own(&bytes[1..]))?,
        700 => {
            let value = f32::from_bits(fields.u32()?);
            float(f64::from(value), || value.to_string(), || format!("{value:e}"))
        }
        701 => {
            let value = f64::from_bits(fields.i64()?.cast_unsigned());
            float(value, || value.to_string(), || format!("{value:e}"))
        }
        1082 => match fields.i32()? {
            i32::MAX => "infinity".to_owned(),
            i32::MIN => "-infinity".to_owned(),
            days => date(Some(i64::from(days)).filter(|days| DAYS.contains(days))?, ""),
        },
        1083 => clock(fields.i64().filter(|us| (0..=DAY_US).contains(us))?),
        1114 => instant(fields.i64()?, "")?,
        1184 => instant(fields.i64()?, "+00")?,
        1186 => match (fields.i64()?, fields.i32()?, fields.i32()?) {
            (i64::MAX, i32::MAX, i32::MAX) => "infinity".to_owned(),
            (i64::MIN, i32::MIN, i32::MIN) => "-infinity".to_owned(),
            (us, days, months) => format!("{months} mons {days} days {us} microseconds"),
        },
        1700 => numeric(&mut fields)?,
        2950 => uuid(fields.bytes(16)?),
        _ => return None,
    };
    fields.is_empty().then_some(text)
}

fn own(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn hexadecimal(before: &str, bytes: &[u8]) -> String {
    bytes.iter().fold(before.to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A float as `plain` or `short` writes it, the second with an exponent.
fn float(value: f64, plain: impl Fn() -> String, short: impl Fn() -> String) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ if value == 0.0 || FLOAT_PLAIN.contains(&value.abs()) => plain(),
        _ => short(),
    }
}

fn uuid(bytes: &[u8]) -> String {
    let plain = hexadecimal("", bytes);
    [&plain[..8], &plain[8..12], &plain[12..16], &plain[16..20], &plain[20..]].join("-")
}

/// A day since 2000 in the proleptic Gregorian calendar, with `time` behind it.
fn date(days: i64, time: &str) -> String {
    // Eras of 400 years that begin in March: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2021).
    let day = days + EPOCH_DAYS + 719_468;
    let (era, in_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let day_of_month = in_year - (153 * from_march + 2) / 5 + 1;
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    format!("{year:04}-{month:02}-{day_of_month:02}{time}{era}")
}

fn clock(us: i64) -> String {
    let seconds = us / 1_000_000;
    format!("{:02}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, us % 1_000_000)
}

fn instant(us: i64, zone: &str) -> Option<String> {
    match us {
        i64::MAX => Some("infinity".to_owned()),
        i64::MIN => Some("-infinity".to_owned()),
        _ if !INSTANTS_US.contains(&us) => None,
        _ => Some(date(us.div_euclid(DAY_US), &format!(" {}{zone}", clock(us.rem_euclid(DAY_US))))),
    }
}

/// At most 131,072 digits before the point and 16,383 behind it, whatever the head says.
fn numeric(fields: &mut Fields<'_>) -> Option<String> {
    let (count, weight) = (fields.i16()?, i64::from(fields.i16()?));
    let sign = fields.i16()?.cast_unsigned();
    let scale = usize::try_from(fields.i16()?).ok().filter(|scale| *scale <= SCALE_MAX)?;
    match sign {
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        0 | 0x4000 => (),
        _ => return None,
    }
    let mut digits = Vec::new();
    for _ in 0..count {
        digits.push(fields.i16().filter(|digit| (0..DIGIT).contains(&i64::from(*digit)))?);
    }
    let digit = |place: i64| usize::try_from(place).ok().and_then(|place| digits.get(place)).copied().unwrap_or(0);
    let written = |from: i64, to: i64| {
        (from..to).fold(String::new(), |mut text, place| {
            let _ = write!(text, "{:04}", digit(place));
            text
        })
    };
    let mut text = if sign == 0 { String::new() } else { "-".to_owned() };
    let whole = written(0, weight + 1);
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let places = i64::try_from(scale.div_ceil(4)).ok()?;
        text.push('.');
        text.push_str(&written(weight + 1, weight + 1 + places)[..scale]);
    }
    Some(text)
}

/// As `array_recv` reads one: elements are of the array's type and none is an array, and with any length of zero it is empty.
fn array(element: u32, bytes: &[u8], room: &mut Room) -> Option<String> {
    let mut fields = Fields::of(bytes);
    let dimensions = usize::try_from(fields.i32()?).ok().filter(|count| *count <= DIMENSIONS_MAX)?;
    fields.i32()?; // whether it has a NULL
    fields.u32().filter(|oid| *oid == element)?;
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(fields.i32()?).ok()?);
        // Others begin with their bounds, which are rare enough to be left.
        fields.i32().filter(|bound| *bound == 1)?;
    }
    let mut text = String::new();
    if lengths.is_empty() || lengths.contains(&0) {
        text.push_str("{}");
    } else {
        let elements = lengths.iter().try_fold(1_usize, |product, length| product.checked_mul(*length))?;
        (elements <= ELEMENTS_MAX.min(fields.left() / ELEMENT_BYTES)).then_some(())?;
        nested(&mut fields, element, &lengths, &mut text, room)?;
    }
    fields.is_empty().then_some(text)
}

/// The elements of one dimension and those within; each length is at least 1, so that what is written is less than six times the elements.
fn nested(fields: &mut Fields<'_>, element: u32, lengths: &[usize], text: &mut String, room: &mut Room) -> Option<()> {
    let (count, inner) = lengths.split_first()?;
    text.push('{');
    for place in 0..*count {
        if place > 0 {
            text.push(',');
        }
        if !inner.is_empty() {
            nested(fields, element, inner, text, room)?;
            continue;
        }
        match usize::try_from(fields.i32()?) {
            Err(_) => text.push_str("NULL"),
            Ok(length) => {
                let value = scalar(element, fields.bytes(length)?, room)?;
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                // Its quotes, its comma, and the brackets around.
                room.take(value.len() + 2 * DIMENSIONS_MAX)?;
                let _ = write!(text, "\"{value}\"");
            }
        }
    }
    text.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(oid: u32, bytes: &[u8]) -> Option<String> {
        text_of(oid, bytes, &mut Room::of(bytes.len()))
    }

    /// A numeric's digits behind its head.
    fn numeric_of(weight: i16, sign: u16, scale: i16, digits: &[i16]) -> Vec<u8> {
        let head = [i16::try_from(digits.len()).unwrap(), weight, sign.cast_signed(), scale];
        head.iter().chain(digits).flat_map(|part| part.to_be_bytes()).collect()
    }

    #[test]
    fn values_are_as_the_server_would_read_them() {
        let day = i64::from(9_460_i32) * DAY_US; // 2025-11-25
        let cases: [(u32, Vec<u8>, Option<&str>); 21] = [
            (16, vec![1], Some("t")),
            (17, vec![0, 255], Some("\\x00ff")),
            (21, (-2_i16).to_be_bytes().to_vec(), Some("-2")),
            (23, 70_000_i32.to_be_bytes().to_vec(), Some("70000")),
            (20, i64::MIN.to_be_bytes().to_vec(), Some("-9223372036854775808")),
            (25, "ü".as_bytes().to_vec(), Some("ü")),
            (25, vec![0xe9], None),
            (701, 0.1_f64.to_be_bytes().to_vec(), Some("0.1")),
            (700, 0.1_f32.to_be_bytes().to_vec(), Some("0.1")),
            (701, f64::NEG_INFINITY.to_be_bytes().to_vec(), Some("-Infinity")),
            (1082, 9_460_i32.to_be_bytes().to_vec(), Some("2025-11-25")),
            (1082, (-730_500_i32).to_be_bytes().to_vec(), Some("0002-12-17 BC")),
            (1114, (day + 3_723_000_004).to_be_bytes().to_vec(), Some("2025-11-25 01:02:03.000004")),
            (1184, (-1_i64).to_be_bytes().to_vec(), Some("1999-12-31 23:59:59.999999+00")),
            (1700, numeric_of(1, 0, 2, &[12, 3456, 7800]), Some("123456.78")),
            (1700, numeric_of(-1, 0x4000, 5, &[12, 3400]), Some("-0.00123")),
            (1700, numeric_of(0, 0, 0, &[]), Some("0")),
            (2950, (0..16).collect(), Some("00010203-0405-0607-0809-0a0b0c0d0e0f")),
            (3802, [&[1][..], b"{\"a\": 1}"].concat(), Some("{\"a\": 1}")),
            (23, vec![0, 0, 1], None),
            (600, vec![0; 16], None),
        ];
        for (oid, bytes, wanted) in cases {
            assert_eq!(decoded(oid, &bytes).as_deref(), wanted, "type {oid}");
        }
    }

    #[test]
    fn arrays_are_nested_and_quoted() {
        let of = |parts: &[i32], elements: &[Option<&[u8]>]| -> Vec<u8> {
            let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_be_bytes()).collect();
            for element in elements {
                let length = element.map_or(-1, |element| i32::try_from(element.len()).unwrap());
                bytes.extend(length.to_be_bytes());
                bytes.extend(element.unwrap_or_default());
            }
            bytes
        };
        let text = of(&[1, 1, 25, 3, 1], &[Some(b"a\"b\\"), None, Some(b"NULL")]);
        assert_eq!(decoded(1009, &text).as_deref(), Some(r#"{"a\"b\\",NULL,"NULL"}"#));
        let four: Vec<[u8; 4]> = (1..5_i32).map(i32::to_be_bytes).collect();
        let elements: Vec<Option<&[u8]>> = four.iter().map(|one| Some(one.as_slice())).collect();
        assert_eq!(decoded(1007, &of(&[2, 0, 23, 2, 1, 2, 1], &elements)).as_deref(), Some(r#"{{"1","2"},{"3","4"}}"#));
        assert_eq!(decoded(1007, &of(&[0, 0, 23], &[])).as_deref(), Some("{}"));
        assert_eq!(decoded(1007, &of(&[1, 0, 23, 1, 0], &[Some(&[0, 0, 0, 1])])), None, "another bound");
    }

    fn array_of(parts: &[i32]) -> Vec<u8> {
        parts.iter().flat_map(|part| part.to_be_bytes()).collect()
    }

    #[test]
    fn an_array_with_a_dimension_of_no_element_is_empty_whatever_the_others_are() {
        for lengths in [[1 << 20, 0], [0, 1 << 20], [0, 0]] {
            let bytes = array_of(&[2, 0, 23, lengths[0], 1, lengths[1], 1]);
            assert_eq!(decoded(1007, &bytes).as_deref(), Some("{}"), "{lengths:?}");
        }
    }

    #[test]
    fn an_array_of_more_elements_than_its_bytes_is_none() {
        for lengths in [[1, -5], [-1, 0], [i32::MAX, i32::MAX], [3, 1]] {
            let bytes = array_of(&[2, 0, 23, lengths[0], 1, lengths[1], 1, -1, -1]);
            assert_eq!(decoded(1007, &bytes), None, "{lengths:?}");
        }
    }

    #[test]
    fn arrays_do_not_nest_by_their_element() {
        // So many levels overflow the stack of a thread.
        let levels = 200_000;
        let inner_bytes = |level: i32| 12 + 24 * (levels - 1 - level);
        let mut bytes: Vec<u8> =
            (0..levels).flat_map(|level| array_of(&[1, 0, 1007, 1, 1, inner_bytes(level)])).collect();
        bytes.extend(array_of(&[0, 0, 23]));
        assert_eq!(decoded(1007, &bytes), None);
    }

    #[test]
    fn a_few_bytes_do_not_become_megabytes() {
        // 1e131068, as often as there is room for it: 131 KB of text for each 14 bytes.
        let element = [&[0, 0, 0, 10][..], &numeric_of(i16::MAX, 0, 0, &[1])].concat();
        let bytes = [array_of(&[1, 0, 1700, 1000, 1]), element.repeat(1000)].concat();
        let text = decoded(1231, &bytes);
        assert!(text.is_none_or(|text| text.len() <= (1 << 20) + 16 * bytes.len()));
        assert!(decoded(701, &1e308_f64.to_be_bytes()).unwrap().len() < 40);
    }

    #[test]
    fn values_that_no_server_has_are_none() {
        let cases: [(u32, Vec<u8>); 6] = [
            (1082, i32::MIN.saturating_add(1).to_be_bytes().to_vec()),
            (1083, (-1_i64).to_be_bytes().to_vec()),
            (1083, (DAY_US + 1).to_be_bytes().to_vec()),
            (1114, (i64::MIN + 1).to_be_bytes().to_vec()),
            (1184, (i64::MAX - 1).to_be_bytes().to_vec()),
            (1700, numeric_of(0, 0, 0x4000, &[1])),
        ];
        for (oid, bytes) in cases {
            assert_eq!(decoded(oid, &bytes), None, "type {oid}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_of_any_type_panic_or_take_more_than_their_room(
            oid in prop_oneof![
                prop::sample::select(vec![16_u32, 17, 20, 21, 23, 25, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802, 0]),
                prop::sample::select(ARRAYS.map(|(array, _)| array).to_vec()),
            ],
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            head in prop::option::of((0_i32..4, prop::collection::vec(-1_i32..5, 1..9))),
        ) {
            if let (Some((_, element)), Some((dimensions, numbers))) = (ARRAYS.iter().find(|(array, _)| *array == oid), head) {
                let numbers: Vec<i32> = [dimensions, 0, element.cast_signed()].into_iter().chain(numbers).collect();
                bytes = [array_of(&numbers), bytes].concat();
            }
            let text = decoded(oid, &bytes);
            prop_assert!(text.is_none_or(|text| text.len() <= Room::of(bytes.len()).0));
        }
    }
}
