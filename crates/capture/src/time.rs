//! Instants as servers write them into logs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub(crate) const SECOND_US: i64 = 1_000_000;
/// From PostgreSQL's first year to 2200. An entry of another time is left out: it would make a capture as long as that.
pub(crate) const PLAUSIBLE_US: std::ops::Range<i64> = 820_454_400 * SECOND_US..7_258_118_400 * SECOND_US;

/// Names of zones with one meaning, in minutes ahead of UTC (tz database, all zones since 2004). The last ones were names there until 2016,
/// and are those of PostgreSQL's `tznames/Default`; the database writes numbers in their place today.
const ZONES: &[(&str, i64)] = &[
    ("UTC", 0), // the first, as most servers log in it
    ("ACDT", 630),
    ("ACST", 570),
    ("ADT", -180),
    ("AEDT", 660),
    ("AEST", 600),
    ("AKDT", -480),
    ("AKST", -540),
    ("AST", -240),
    ("AWDT", 540),
    ("AWST", 480),
    ("BST", 60),
    ("CAT", 120),
    ("CEST", 120),
    ("CET", 60),
    ("ChST", 600),
    ("EAT", 180),
    ("EDT", -240),
    ("EEST", 180),
    ("EET", 120),
    ("EST", -300),
    ("GMT", 0),
    ("HDT", -540),
    ("HKT", 480),
    ("HST", -600),
    ("IDT", 180),
    ("JST", 540),
    ("KST", 540),
    ("MDT", -360),
    ("MEST", 120),
    ("MET", 60),
    ("MSD", 240),
    ("MSK", 180),
    ("MST", -420),
    ("NDT", -150),
    ("NST", -210),
    ("NZDT", 780),
    ("NZST", 720),
    ("PDT", -420),
    ("PKST", 360),
    ("PKT", 300),
    ("SAST", 120),
    ("SST", -660),
    ("WAT", 60),
    ("WEST", 60),
    ("WET", 0),
    ("WIB", 420),
    ("WIT", 540),
    ("WITA", 480),
    ("Z", 0),
    ("ART", -180),
    ("BRT", -180),
    ("ICT", 420),
    ("MYT", 480),
    ("NPT", 345),
    ("PHT", 480),
    ("SGT", 480),
];
/// Names of several places, with what each may mean, in minutes, and the name of the other season there, which tells the place.
const AMBIGUOUS: &[(&str, &[(i64, &str)])] = &[
    ("CDT", &[(-300, ""), (-240, "")]),
    ("CST", &[(-360, "CDT"), (-300, ""), (480, "")]),
    ("IST", &[(330, ""), (120, "IDT"), (60, "GMT")]),
    ("PST", &[(-480, "PDT"), (480, "")]),
];
/// Moscow was four hours ahead for these years, under the same name.
const MOSCOW_AHEAD_S: std::ops::Range<i64> = 1_301_180_400..1_414_274_400;
/// No place is further ahead of UTC, or behind it.
const HOURS_MAX: i64 = 15;

/// An instant as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written<'a> {
    /// Microseconds since 1970.
    pub us: i64,
    /// Whether it has fractions of seconds.
    pub fractions: bool,
    pub zone: Zone,
    /// What is behind it.
    pub rest: &'a str,
}

/// What the zone of an instant says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Zone {
    /// How far it is from UTC, which is in the instant.
    #[default]
    Known,
    /// A name of several places, or of none that is known, or no name. The instant counts as UTC.
    Unsure(Name),
    /// A name that is known, and tells what an ambiguous one of the same log means.
    Telling(Name),
}

/// The name of a zone: at most so many letters, which is more than the tz database has in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Name([u8; 8]);

impl Zone {
    /// No zone is written.
    pub(crate) fn lacking() -> Self {
        Self::Unsure(Name::of(""))
    }
}

impl Name {
    pub(crate) fn of(text: &str) -> Self {
        let mut letters = [0; 8];
        for (letter, byte) in letters.iter_mut().zip(text.bytes()) {
            *letter = byte;
        }
        Self(letters)
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end])
    }

    /// What it may mean, in seconds ahead of UTC; nothing if it is no name that is known.
    pub(crate) fn meanings(&self) -> impl Iterator<Item = i64> + use<> {
        let text = self.text();
        let found = AMBIGUOUS.iter().find(|(name, _)| *name == text).map_or(&[][..], |(_, meanings)| meanings);
        found.iter().map(|(minutes, _)| minutes * 60)
    }

    /// What it means where this other name is in the log too.
    pub(crate) fn beside(&self, other: &Self) -> Option<i64> {
        let (text, other) = (self.text(), other.text());
        let (_, meanings) = AMBIGUOUS.iter().find(|(name, _)| *name == text)?;
        meanings.iter().find(|(_, season)| *season == other).map(|(minutes, _)| minutes * 60)
    }
}

/// Reads `2026-11-25 07:04:42.123 CET` from the beginning of a text.
///
/// Zones are those of PostgreSQL's `%Z`: names, and numbers of two or four digits (`-03`, `+0545`). Without a blank before them
/// they are ISO 8601's (`Z`, `+02`, `+02:30`), as in values of `timestamptz` and in what tools put before a line.
pub(crate) fn instant(text: &str) -> Option<Written<'_>> {
    let bytes = text.as_bytes();
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let number = |from: usize, to: usize| number(bytes.get(from..to)?);
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
    let fractions = is(19, b".,") && bytes.get(20).is_some_and(u8::is_ascii_digit);
    if fractions {
        let digits = bytes[20..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let kept = digits.min(6);
        fraction_us = number(20, 20 + kept)? * 10_i64.pow(6 - u32::try_from(kept).ok()?);
        at = 20 + digits;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let (mut offset_s, zone, rest) = zone(&text[at..]);
    if offset_s == 180 * 60 && MOSCOW_AHEAD_S.contains(&(seconds - offset_s)) && text[at..].starts_with(" MSK") {
        offset_s = 240 * 60;
    }
    Some(Written { us: (seconds - offset_s) * SECOND_US + fraction_us, fractions, zone, rest })
}

fn number(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum.saturating_mul(10) + i64::from(byte - b'0')))
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date algorithms").
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The year of a day since 1970-01-01, by the same.
pub(crate) fn year_of(day: i64) -> i64 {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day - era * 146_097;
    let of_year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let since_march = of_era - (365 * of_year + of_year / 4 - of_year / 100);
    // January and February are the last months of the year before.
    era * 400 + of_year + i64::from(since_march >= 306)
}

/// The zone at the beginning of a text: its offset in seconds, what it says, and what is behind it.
fn zone(text: &str) -> (i64, Zone, &str) {
    let nothing = (0, Zone::lacking(), text);
    let Some(inner) = text.strip_prefix(' ') else { return iso(text).unwrap_or(nothing) };
    if let Some((quoted, rest)) = inner.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
        // As POSIX quotes it.
        return match numeric(quoted) {
            Some((offset_s, "")) => (offset_s, Zone::Known, rest),
            _ => nothing,
        };
    }
    if let Some((offset_s, rest)) = numeric(inner) {
        return (offset_s, Zone::Known, rest);
    }
    let end = inner.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = inner.split_at(end);
    if name == "GMT"
        && let Some((offset_s, rest)) = of_etc(rest)
    {
        return (offset_s, Zone::Known, rest);
    }
    if end == 0 { nothing } else { named(name, rest) }
}

fn named<'a>(name: &str, rest: &'a str) -> (i64, Zone, &'a str) {
    let Some((_, minutes)) = ZONES.iter().find(|(known, _)| *known == name) else {
        let zone = Zone::Unsure(Name::of(name));
        return (0, zone, rest);
    };
    let is_telling = matches!(name, "GMT" | "IDT" | "PDT");
    (minutes * 60, if is_telling { Zone::Telling(Name::of(name)) } else { Zone::Known }, rest)
}

/// `+0545`, `-03`: two or four digits, and no more behind them.
fn numeric(text: &str) -> Option<(i64, &str)> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    let (hours, minutes) = match digits {
        2 => (number(&text.as_bytes()[1..3])?, 0),
        4 => (number(&text.as_bytes()[1..3])?, number(&text.as_bytes()[3..5])?),
        _ => return None,
    };
    (hours <= HOURS_MAX && minutes < 60).then(|| (sign * (hours * 3600 + minutes * 60), &text[1 + digits..]))
}

/// `+3` behind `GMT`, as the zones `Etc/GMT+3` were called until 2016: three hours *behind* UTC, as POSIX counts.
fn of_etc(text: &str) -> Option<(i64, &str)> {
    let ahead = match text.as_bytes().first()? {
        b'+' => -1,
        b'-' => 1,
        _ => return None,
    };
    let digits = text.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    let rest = &text[1 + digits..];
    // `%t-%c-`: what follows is a session.
    if !(1..=2).contains(&digits) || rest.starts_with(|next: char| next.is_alphanumeric() || next == '.') {
        return None;
    }
    let hours = number(&text.as_bytes()[1..=digits])?;
    (hours <= 14).then_some((ahead * hours * 3600, rest))
}

/// `Z`, `+02`, `+0230`, `+02:30`, `+02:30:00`.
fn iso(text: &str) -> Option<(i64, Zone, &str)> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((0, Zone::Known, rest));
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        b'A'..=b'Z' | b'a'..=b'z' => {
            let end = text.bytes().take_while(u8::is_ascii_alphabetic).count();
            return Some(named(&text[..end], &text[end..]));
        }
        _ => return None,
    };
    if let Some((offset_s, rest)) = numeric(text)
        && !rest.starts_with(':')
    {
        return Some((offset_s, Zone::Known, rest));
    }
    let bytes = text.as_bytes();
    let part = |at: usize| bytes.get(at..at + 2).and_then(number);
    let (hours, minutes) = (part(1)?, if bytes.get(3) == Some(&b':') { part(4)? } else { return None });
    let (seconds, end) = match (bytes.get(6), part(7)) {
        (Some(b':'), Some(seconds)) => (seconds, 9),
        _ => (0, 6),
    };
    let is_zone = hours <= HOURS_MAX && minutes < 60 && seconds < 60;
    is_zone.then(|| (sign * (hours * 3600 + minutes * 60 + seconds), Zone::Known, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(text: &str) -> Option<(i64, bool, &str)> {
        instant(text).map(|found| (found.us, found.fractions, found.rest))
    }

    #[test]
    fn an_instant_is_read_with_its_fractions_and_its_zone() {
        assert_eq!(us("1970-01-01 00:00:01 UTC:x"), Some((1_000_000, false, ":x")));
        assert_eq!(us("2026-11-25 08:04:42.123 CET [1]"), Some((1_795_590_282_123_000, true, " [1]")));
        assert_eq!(us("2026-11-25 07:04:42.123 XYZ [1]"), Some((1_795_590_282_123_000, true, " [1]")));
        assert_eq!(us("2026-11-25 09:04:42.123 +02,"), Some((1_795_590_282_123_000, true, ",")));
        assert_eq!(us("2026-11-25T09:34:42.123456+02:30"), Some((1_795_590_282_123_456, true, "")));
        assert_eq!(us("2026-11-25T09:34:42.123456+02:30:00x"), Some((1_795_590_282_123_456, true, "x")));
        assert_eq!(us("2026-11-25 07:04:42 UTC-65f0.1a-"), Some((1_795_590_282_000_000, false, "-65f0.1a-")));
        assert_eq!(us("2026-11-25T07:04:42,123Z x"), Some((1_795_590_282_123_000, true, " x")));
    }

    #[test]
    fn zones_that_are_numbers_have_two_digits_or_four_and_no_colon() {
        let at = 1_795_590_282_000_000;
        for (text, rest) in [
            ("2026-11-25 12:49:42 +0545 [900] ", " [900] "),
            ("2026-11-25 04:04:42 -03:10.0.0.1(4355):", ":10.0.0.1(4355):"),
            ("2026-11-25 20:49:42 +1345:10.0.0.1(4355):", ":10.0.0.1(4355):"),
            ("2026-11-25 12:49:42 <+0545> x", " x"),
            ("2026-11-25 04:04:42 GMT+3 [1981]", " [1981]"),
            ("2026-11-25 10:04:42 GMT-3:[local]", ":[local]"),
            ("2026-11-25 07:04:42 GMT-65f0a1b2.1a-", "-65f0a1b2.1a-"),
            ("2026-11-25 04:04:42 -03-65f0a1b2.1a-", "-65f0a1b2.1a-"),
            ("2026-11-25 08:04:42+01", ""),
            ("2026-11-25 12:34:42+0530 host", " host"),
        ] {
            assert_eq!(us(text), Some((at, false, rest)), "{text}");
        }
        assert_eq!(instant("2026-11-25 07:04:42 +053 x").unwrap().zone, Zone::lacking());
    }

    #[test]
    fn a_name_of_several_places_is_told_by_the_other_season() {
        let zone = |name: &str| instant(&format!("2026-11-25 07:04:42 {name} x")).unwrap().zone;
        let Zone::Unsure(ist) = zone("IST") else { panic!("it is of three places") };
        let Zone::Telling(idt) = zone("IDT") else { panic!("it tells the place") };
        assert_eq!(ist.beside(&idt), Some(7200));
        assert_eq!(ist.meanings().collect::<Vec<_>>(), [19_800, 7200, 3600]);
        assert_eq!(zone("XYZ"), Zone::Unsure(Name::of("XYZ")));
        assert_eq!(Name::of("XYZ").meanings().count(), 0);
        assert_eq!(zone("CET"), Zone::Known);
        assert_eq!(zone(""), Zone::lacking());
    }

    #[test]
    fn moscow_was_four_hours_ahead_for_some_years() {
        let offset = |year: i64| instant(&format!("{year}-06-01 12:00:00 MSK")).unwrap().us / SECOND_US;
        let noon = |year: i64| days(year, 6, 1) * 86_400 + 12 * 3600;
        for (year, hours) in [(2010, 3), (2013, 4), (2026, 3)] {
            assert_eq!(noon(year) - offset(year), hours * 3600, "{year}");
        }
    }

    #[test]
    fn the_year_of_a_day_is_that_of_the_calendar() {
        for year in 1969..2201 {
            assert_eq!((year_of(days(year, 1, 1)), year_of(days(year, 12, 31))), (year, year));
            assert_eq!(year_of(days(year, 3, 1) - 1), year);
        }
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
        for zone in
            ["+02:9223372036854775807", "-15:99", "+99999999999999999999", "+2:2:2", " GMT+99999999999999999999"]
        {
            assert!(instant(&format!("2026-11-25 07:04:42 {zone}")).is_some(), "{zone}");
            assert!(instant(&format!("2026-11-25 07:04:42{zone}")).is_some(), "{zone}");
        }
        assert!(instant("2026-11-25 07:04:42.é").is_some_and(|found| !found.fractions));
    }
}
