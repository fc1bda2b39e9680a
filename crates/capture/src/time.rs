//! Instants as servers write them into logs.

pub(crate) const SECOND_US: i64 = 1_000_000;
/// From PostgreSQL's first year to 2200. An entry of another time is left out: it would make a capture as long as that.
pub(crate) const PLAUSIBLE_US: std::ops::Range<i64> = 820_454_400 * SECOND_US..7_258_118_400 * SECOND_US;

/// Names of zones with one meaning, in minutes ahead of UTC (tz database, and PostgreSQL's `tznames/Default`). Left out are
/// those of several places, as CST, IST and PST.
const ZONES: &[(&str, i64)] = &[
    ("UTC", 0), // the first, as most servers log in it
    ("ACDT", 630),
    ("ACST", 570),
    ("AEDT", 660),
    ("AEST", 600),
    ("AWST", 480),
    ("BST", 60),
    ("CEST", 120),
    ("CET", 60),
    ("EDT", -240),
    ("EEST", 180),
    ("EET", 120),
    ("EST", -300),
    ("HKT", 480),
    ("JST", 540),
    ("KST", 540),
    ("MDT", -360),
    ("MSK", 180),
    ("MST", -420),
    ("NZDT", 780),
    ("NZST", 720),
    ("PDT", -420),
    ("PKT", 300),
    ("SAST", 120),
    ("WEST", 60),
];

/// Reads `2026-11-25 07:04:42.123 CET` from the beginning of a text: microseconds since 1970, whether there were
/// fractions, and what is behind it.
///
/// A zone that is a number is applied, and so is a name of [`ZONES`]. Another name counts as UTC: differences within a log are right
/// but for a change of daylight saving, which the reader tells, as the time goes back.
pub(crate) fn instant(text: &str) -> Option<(i64, bool, &str)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        bytes
            .get(from..to)?
            .iter()
            .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    if !(is(4, b"-") && is(7, b"-") && is(10, b" T") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut fraction_us = 0;
    let fractions = is(19, b".");
    if fractions {
        let digits = bytes[20..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let kept = digits.min(6);
        fraction_us = number(20, 20 + kept)? * 10_i64.pow(6 - u32::try_from(kept).ok()?);
        at = 20 + digits;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let (offset_s, rest) = zone(&text[at..]);
    Some(((seconds - offset_s) * 1_000_000 + fraction_us, fractions, rest))
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The zone at the beginning of a text, as ` CET`, ` +02`, `+02:00`, `Z`: its offset in seconds if it is known, and what is behind.
fn zone(text: &str) -> (i64, &str) {
    let inner = text.strip_prefix(' ').unwrap_or(text);
    let sign = match inner.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(b'A'..=b'Z' | b'a'..=b'z') => {
            let end = inner.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (name, rest) = inner.split_at(end);
            return (ZONES.iter().find(|(known, _)| *known == name).map_or(0, |(_, minutes)| minutes * 60), rest);
        }
        _ => return (0, text),
    };
    let end = 1 + inner.bytes().skip(1).take_while(|byte| byte.is_ascii_digit() || *byte == b':').count();
    let parts: Vec<&str> = inner[1..end].split(':').collect();
    let Some(hours) = parts.first().and_then(|hours| hours.parse::<i64>().ok()) else { return (0, text) };
    let minutes = parts.get(1).map_or(Ok(0), |minutes| minutes.parse::<i64>());
    let Some(minutes) = minutes.ok().filter(|minutes| *minutes < 60) else { return (0, text) };
    if hours > 15 {
        // `%t-%c-` has no space: what follows is not a zone.
        return (0, text);
    }
    (sign * (hours * 3600 + minutes * 60), &inner[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_read_with_its_fractions_and_its_zone() {
        assert_eq!(instant("1970-01-01 00:00:01 UTC:x"), Some((1_000_000, false, ":x")));
        assert_eq!(instant("2026-11-25 08:04:42.123 CET [1]"), Some((1_795_590_282_123_000, true, " [1]")));
        assert_eq!(instant("2026-11-25 07:04:42.123 XYZ [1]"), Some((1_795_590_282_123_000, true, " [1]")));
        assert_eq!(instant("2026-11-25 09:04:42.123 +02,"), Some((1_795_590_282_123_000, true, ",")));
        assert_eq!(instant("2026-11-25T09:34:42.123456+02:30"), Some((1_795_590_282_123_456, true, "")));
        assert_eq!(instant("2026-11-25 07:04:42 UTC-65f0.1a-"), Some((1_795_590_282_000_000, false, "-65f0.1a-")));
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for text in ["", "2026-11-25", "2026-13-25 07:04:42", "2026/11/25 07:04:42", "20x6-11-25 07:04:42", "SELECT 1"]
        {
            assert_eq!(instant(text), None, "{text}");
        }
    }

    #[test]
    fn a_zone_of_any_digits_does_not_overflow() {
        for zone in ["+02:9223372036854775807", "-15:99", "+99999999999999999999", "+2:2:2"] {
            assert!(instant(&format!("2026-11-25 07:04:42 {zone}")).is_some(), "{zone}");
        }
    }
}
