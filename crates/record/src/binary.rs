//! Values in binary as the texts that PostgreSQL reads: what `…send` of a type makes (`src/backend/utils/adt`).
//!
//! A replay sends values as text, as logs have them.

use std::fmt::Write;

use crate::messages::Fields;

/// Days from 1970 to 2000, from where PostgreSQL counts.
const EPOCH_DAYS: i64 = 10_957;
const DAY_US: i64 = 86_400_000_000;
/// Digits of a numeric are of this base.
const DIGIT: i64 = 10_000;
/// More dimensions than an array may have (`MAXDIM`).
const DIMENSIONS_MAX: usize = 6;
/// Types whose binary form is an array's.
const ARRAYS: [u32; 20] = [
    199, 1000, 1001, 1002, 1003, 1005, 1007, 1009, 1014, 1015, 1016, 1021, 1022, 1028, 1115, 1182, 1185, 1231, 2951,
    3807,
];

/// The text of a value of a type (`pg_type.oid`). None if the type is not known here, or the value not its.
pub(crate) fn text_of(oid: u32, bytes: &[u8]) -> Option<String> {
    if ARRAYS.contains(&oid) {
        return array(bytes);
    }
    let mut fields = Fields::of(bytes);
    let text = match oid {
        16 => (if fields.byte()? == 0 { "f" } else { "t" }).to_owned(),
        17 => return Some(hexadecimal("\\x", bytes)),
        20 => fields.i64()?.to_string(),
        21 => fields.i16()?.to_string(),
        23 => fields.i32()?.to_string(),
        26 | 2205 => fields.u32()?.to_string(),
        18 | 19 | 25 | 114 | 142 | 705 | 1042 | 1043 => return own(bytes),
        3802 => return (fields.byte()? == 1).then(|| own(&bytes[1..]))?,
        700 => float(f64::from(f32::from_bits(fields.u32()?)), || {
            f32::from_be_bytes(bytes.try_into().unwrap_or_default()).to_string()
        }),
        701 => {
            let value = f64::from_bits(fields.i64()?.cast_unsigned());
            float(value, || value.to_string())
        }
        1082 => match fields.i32()? {
            i32::MAX => "infinity".to_owned(),
            i32::MIN => "-infinity".to_owned(),
            days => date(i64::from(days), ""),
        },
        1083 => clock(fields.i64()?),
        1114 => instant(fields.i64()?, ""),
        1184 => instant(fields.i64()?, "+00"),
        1186 => {
            let (us, days, months) = (fields.i64()?, fields.i32()?, fields.i32()?);
            format!("{months} mons {days} days {us} microseconds")
        }
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

fn float(value: f64, finite: impl Fn() -> String) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ => finite(),
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

fn instant(us: i64, zone: &str) -> String {
    match us {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        _ => date(us.div_euclid(DAY_US), &format!(" {}{zone}", clock(us.rem_euclid(DAY_US)))),
    }
}

fn numeric(fields: &mut Fields<'_>) -> Option<String> {
    let (count, weight) = (fields.i16()?, i64::from(fields.i16()?));
    let (sign, scale) = (fields.i16()?.cast_unsigned(), usize::try_from(fields.i16()?).ok()?);
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
    let mut text = if sign == 0 { String::new() } else { "-".to_owned() };
    let whole: String = (0..=weight).map(|place| format!("{:04}", digit(place))).collect();
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let places = i64::try_from(scale.div_ceil(4)).ok()?;
        let part: String = (weight + 1..=weight + places).map(|place| format!("{:04}", digit(place))).collect();
        text.push('.');
        text.push_str(&part[..scale]);
    }
    Some(text)
}

fn array(bytes: &[u8]) -> Option<String> {
    let mut fields = Fields::of(bytes);
    let dimensions = usize::try_from(fields.i32()?).ok().filter(|count| *count <= DIMENSIONS_MAX)?;
    fields.i32()?; // whether it has a NULL
    let element = fields.u32()?;
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(fields.i32()?);
        // Others begin with their bounds, which are rare enough to be left.
        fields.i32().filter(|bound| *bound == 1)?;
    }
    let mut text = String::new();
    if lengths.is_empty() {
        text.push_str("{}");
    } else {
        nested(&mut fields, element, &lengths, &mut text)?;
    }
    fields.is_empty().then_some(text)
}

fn nested(fields: &mut Fields<'_>, element: u32, lengths: &[i32], text: &mut String) -> Option<()> {
    let (count, inner) = lengths.split_first()?;
    text.push('{');
    for place in 0..*count {
        if place > 0 {
            text.push(',');
        }
        if !inner.is_empty() {
            nested(fields, element, inner, text)?;
            continue;
        }
        match usize::try_from(fields.i32()?) {
            Err(_) => text.push_str("NULL"),
            Ok(length) => {
                let value = text_of(element, fields.bytes(length)?)?;
                let _ = write!(text, "\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
            }
        }
    }
    text.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(text_of(oid, &bytes).as_deref(), wanted, "type {oid}");
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
        assert_eq!(text_of(1009, &text).as_deref(), Some(r#"{"a\"b\\",NULL,"NULL"}"#));
        let four: Vec<[u8; 4]> = (1..5_i32).map(i32::to_be_bytes).collect();
        let elements: Vec<Option<&[u8]>> = four.iter().map(|one| Some(one.as_slice())).collect();
        assert_eq!(text_of(1007, &of(&[2, 0, 23, 2, 1, 2, 1], &elements)).as_deref(), Some(r#"{{"1","2"},{"3","4"}}"#));
        assert_eq!(text_of(1007, &of(&[0, 0, 23], &[])).as_deref(), Some("{}"));
        assert_eq!(text_of(1007, &of(&[1, 0, 23, 1, 0], &[Some(&[0, 0, 0, 1])])), None, "another bound");
    }
}
