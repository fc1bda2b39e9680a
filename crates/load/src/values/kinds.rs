//! Which types of PostgreSQL return a value exactly as it is written.
//!
//! A type is a guess that loses nothing only if it writes each value of the column back byte for byte: `00013` is a number, and
//! `bigint` returns `13`. "Writes back" is what COPY and a cast to text do; for times also what ISO 8601 has (`T` between date
//! and time, `Z`), where all values of the column are written in one such way, so that one rule restores every value.

/// A set of types and ways of writing. Those of a column are what its values have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(u32);

const BIGINT: u32 = 1;
const NUMERIC: u32 = 1 << 1;
const DOUBLE: u32 = 1 << 2;
/// `true` and `false`, as a cast to text writes them.
const TRUE_FALSE: u32 = 1 << 3;
/// `t` and `f`, as COPY writes them.
const T_F: u32 = 1 << 4;
const DATE: u32 = 1 << 5;
const UUID: u32 = 1 << 6;
const SPACE: u32 = 1 << 7;
const LETTER_T: u32 = 1 << 8;
/// No seconds.
const MINUTES: u32 = 1 << 9;
/// As many digits of the seconds as are needed: PostgreSQL's way.
const TRIMMED: u32 = 1 << 10;
const MILLIS: u32 = 1 << 11;
const MICROS: u32 = 1 << 12;
/// None for zero, otherwise six: Python's way.
const NONE_OR_MICROS: u32 = 1 << 13;
/// None, three or six: Java's way.
const THREES: u32 = 1 << 14;
const NO_ZONE: u32 = 1 << 15;
const Z: u32 = 1 << 16;
const ZONE_HOURS: u32 = 1 << 17;
const ZONE_COLON: u32 = 1 << 18;
const ZONE_DIGITS: u32 = 1 << 19;
/// Whether `t`, and whether `f` was there. Unlike the others these bits come with values.
const SEEN_T: u32 = 1 << 20;
const SEEN_F: u32 = 1 << 21;

const SIMPLE: u32 = BIGINT | NUMERIC | DOUBLE | TRUE_FALSE | T_F | DATE | UUID;
const SEPARATORS: u32 = SPACE | LETTER_T;
const SECONDS: u32 = MINUTES | TRIMMED | MILLIS | MICROS | NONE_OR_MICROS | THREES;
const UTC: u32 = Z | ZONE_HOURS | ZONE_COLON | ZONE_DIGITS;
const ZONES: u32 = NO_ZONE | UTC;
const SEEN: u32 = SEEN_T | SEEN_F;
const EVERY: u32 = SIMPLE | SEPARATORS | SECONDS | ZONES;

const UUID_BYTES: usize = 36;
/// Digits that `double precision` always returns (`DBL_DIG`).
const SURE_DIGITS: usize = 15;
/// Digits of the longest of the shortest numbers that are read as they were.
const SHORTEST_DIGITS_MAX: usize = 17;
/// `numeric` has at most these digits before the point, and behind it (PostgreSQL documentation, "Numeric Types").
const NUMERIC_DIGITS: (usize, usize) = (131_072, 16_383);

impl Kinds {
    /// Of a column without values.
    pub(crate) const ALL: Self = Self(EVERY);

    /// The bits, to be given back to [`Kinds::from_bits`].
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// From bits of an earlier look.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits & (EVERY | SEEN))
    }

    /// What returns one value.
    pub(crate) fn of(value: &[u8]) -> Self {
        let found = match value {
            b"true" | b"false" => TRUE_FALSE,
            b"t" => T_F | SEEN_T,
            b"f" => T_F | SEEN_F,
            b"NaN" => NUMERIC | DOUBLE,
            b"Infinity" | b"-Infinity" => DOUBLE,
            [_, _, _, _, _, _, _, _, b'-', ..] if value.len() == UUID_BYTES => uuid(value),
            [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] => number(value).unwrap_or_else(|| dashed(value)),
            _ => 0,
        };
        Self(found)
    }

    /// What both have.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self((self.0 & other.0 & EVERY) | ((self.0 | other.0) & SEEN))
    }

    /// Whether nothing but text is left.
    pub(crate) fn is_text(self) -> bool {
        self.0 & SIMPLE == 0 && !self.is_time()
    }

    fn is_time(self) -> bool {
        self.0 & SEPARATORS != 0 && self.0 & SECONDS != 0 && self.0 & ZONES != 0
    }

    /// The narrowest type that returns all values, of which there are some.
    pub(crate) fn narrowest(self) -> &'static str {
        let simple = [
            (BIGINT, "bigint"),
            (NUMERIC, "numeric"),
            (DOUBLE, "double precision"),
            (TRUE_FALSE, "boolean"),
            (DATE, "date"),
            (UUID, "uuid"),
        ];
        if let Some((_, name)) = simple.iter().find(|(bit, _)| self.0 & bit != 0) {
            return name;
        }
        if self.0 & T_F != 0 {
            // A column of one letter may mean anything by it.
            return if self.0 & SEEN == SEEN { "boolean" } else { "text" };
        }
        match self.is_time() {
            true if self.0 & NO_ZONE != 0 => "timestamp",
            true => "timestamptz",
            false => "text",
        }
    }

    /// Whether a type that was chosen earlier returns all values.
    pub(crate) fn has(self, name: &str) -> bool {
        let bit = match name {
            "bigint" => BIGINT,
            "numeric" => NUMERIC,
            "double precision" => DOUBLE,
            "boolean" => TRUE_FALSE | T_F,
            "date" => DATE,
            "uuid" => UUID,
            "timestamp" => return self.is_time() && self.0 & NO_ZONE != 0,
            "timestamptz" => return self.is_time() && self.0 & UTC != 0,
            _ => return true,
        };
        self.0 & bit != 0
    }
}

/// Digits at the beginning.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// A number, with digits before and behind the point, and an exponent; none if it is not one.
fn number(value: &[u8]) -> Option<u32> {
    let (negative, rest) = value.strip_prefix(b"-").map_or((false, value), |rest| (true, rest));
    let (whole, rest) = digits(rest);
    let (part, rest) = rest.strip_prefix(b".").map_or((&[][..], rest), digits);
    let has_point =
        value.len() > usize::from(negative) + whole.len() && value[usize::from(negative) + whole.len()] == b'.';
    let exponent = match rest {
        [] => None,
        [b'e', rest @ ..] => Some(rest),
        _ => return None,
    };
    if (whole.len() > 1 && whole[0] == b'0') || (has_point && part.is_empty()) {
        return Some(0);
    }
    let is_zero = whole.iter().chain(part).all(|digit| *digit == b'0');
    if let Some(exponent) = exponent {
        return Some(if double_with_exponent(whole, part, exponent) { DOUBLE } else { 0 });
    }
    if is_zero && negative {
        return Some(0); // `numeric` has no negative zero
    }
    let mut found = if whole.len() <= NUMERIC_DIGITS.0 && part.len() <= NUMERIC_DIGITS.1 { NUMERIC } else { 0 };
    if !has_point && (whole.len() <= 18 || str::from_utf8(value).is_ok_and(|text| text.parse::<i64>().is_ok())) {
        found |= BIGINT;
    }
    if double(whole, part) {
        found |= DOUBLE;
    }
    Some(found)
}

/// Whether `double precision` returns a number without an exponent (PostgreSQL's `d2s.c` writes no exponent from 0.0001 to 1e15).
fn double(whole: &[u8], part: &[u8]) -> bool {
    if whole.len() > SURE_DIGITS || part.last() == Some(&b'0') {
        return false;
    }
    let is_below_one = whole == b"0";
    let leading = part.iter().take_while(|digit| **digit == b'0').count();
    if is_below_one && !part.is_empty() && leading > 3 {
        return false;
    }
    let significant = if is_below_one { part.len() - leading.min(part.len()) } else { whole.len() + part.len() };
    significant <= SURE_DIGITS || (!part.is_empty() && is_shortest(whole, part, 0))
}

/// The same with an exponent, which has a sign and two digits or three.
fn double_with_exponent(whole: &[u8], part: &[u8], exponent: &[u8]) -> bool {
    let (negative, rest) = match exponent {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => return false,
    };
    let is_written_so = matches!(rest, [b'0'..=b'9', b'0'..=b'9'] | [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9']);
    let size = rest
        .iter()
        .fold(0_i32, |size, digit| size.saturating_mul(10).saturating_add(i32::from(digit.wrapping_sub(b'0'))));
    // Near the ends of the range there are fewer digits.
    let has_exponent = if negative { (5..=290).contains(&size) } else { (15..=290).contains(&size) };
    if !is_written_so || !has_exponent || whole.len() != 1 || whole == b"0" || part.last() == Some(&b'0') {
        return false;
    }
    is_shortest(whole, part, if negative { -size } else { size })
}

/// Whether a number is the shortest one that is read as its double. PostgreSQL takes none that lies exactly between two doubles.
fn is_shortest(whole: &[u8], part: &[u8], exponent: i32) -> bool {
    let text: Vec<u8> = whole.iter().chain(part).copied().skip_while(|digit| *digit == b'0').collect();
    if text.len() > SHORTEST_DIGITS_MAX {
        return false;
    }
    let written: u64 = text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    let power = exponent - i32::try_from(part.len()).unwrap_or(i32::MAX);
    if is_between(written, power) {
        return false;
    }
    if text.len() <= SURE_DIGITS {
        return true;
    }
    let Ok(number) = format!("{written}e{power}").parse::<f64>() else { return false };
    let shortest: Vec<u8> =
        format!("{number:e}").bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).collect();
    shortest == text
}

/// Whether `number` times ten to the `power` may lie exactly between two doubles, which have 53 bits.
fn is_between(number: u64, power: i32) -> bool {
    let odd = u128::from(number >> number.trailing_zeros().min(63));
    if power >= 0 {
        let Some(five) = 5_u128.checked_pow(power.unsigned_abs()) else { return false };
        return odd.checked_mul(five).is_some_and(|whole| (1 << 53..1 << 54).contains(&whole));
    }
    let divides = 5_u64.checked_pow(power.unsigned_abs()).is_some_and(|five| number.is_multiple_of(five));
    divides && number >= 1 << 53
}

/// What has dashes: a day, a time, a UUID.
fn dashed(value: &[u8]) -> u32 {
    match value.len() {
        10 if is_day(value) => DATE,
        16.. if is_day(&value[..10]) => time(&value[10..]),
        _ => 0,
    }
}

fn pair(text: &[u8]) -> Option<u32> {
    match text {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0')),
        _ => None,
    }
}

/// `YYYY-MM-DD`, if there is such a day.
fn is_day(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return false };
    let parts = (pair(&[*y1, *y2]), pair(&[*y3, *y4]), pair(&[*m1, *m2]), pair(&[*d1, *d2]));
    let (Some(century), Some(rest), Some(month), Some(day)) = parts else { return false };
    let year = century * 100 + rest;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

/// What follows a day: a separator, hours and minutes, perhaps seconds with digits, perhaps UTC.
fn time(text: &[u8]) -> u32 {
    let (separator, text) = match text {
        [b' ', rest @ ..] => (SPACE, rest),
        [b'T', rest @ ..] => (LETTER_T, rest),
        _ => return 0,
    };
    let [h1, h2, b':', m1, m2, rest @ ..] = text else { return 0 };
    let (Some(0..=23), Some(0..=59)) = (pair(&[*h1, *h2]), pair(&[*m1, *m2])) else { return 0 };
    let (seconds, rest) = match rest {
        [b':', s1, s2, rest @ ..] => {
            let Some(0..=59) = pair(&[*s1, *s2]) else { return 0 };
            let (part, rest) = rest.strip_prefix(b".").map_or((None, rest), |rest| {
                let (part, rest) = digits(rest);
                (Some(part), rest)
            });
            (part.map_or(TRIMMED | NONE_OR_MICROS | THREES, parts_of_seconds), rest)
        }
        rest => (MINUTES, rest),
    };
    let zone = match rest {
        b"" => NO_ZONE,
        b"Z" => Z,
        b"+00" => ZONE_HOURS,
        b"+00:00" => ZONE_COLON,
        b"+0000" => ZONE_DIGITS,
        _ => return 0,
    };
    if seconds == 0 { 0 } else { separator | seconds | zone }
}

/// The ways in which digits behind the point of the seconds may be meant.
fn parts_of_seconds(part: &[u8]) -> u32 {
    let is_trimmed = (1..=6).contains(&part.len()) && part.last() != Some(&b'0');
    let is_zero = part.iter().all(|digit| *digit == b'0');
    let mut found = if is_trimmed { TRIMMED } else { 0 };
    if part.len() == 3 {
        found |= if is_zero { MILLIS } else { MILLIS | THREES };
    }
    if part.len() == 6 {
        found |= MICROS;
        if !is_zero {
            found |= NONE_OR_MICROS;
        }
        if !part.ends_with(b"000") {
            found |= THREES;
        }
    }
    found
}

/// In small letters, as PostgreSQL writes it.
fn uuid(text: &[u8]) -> u32 {
    let is_one = text.len() == UUID_BYTES
        && text.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    if is_one { UUID } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of a column with these values.
    fn of(values: &[&str]) -> &'static str {
        values.iter().fold(Kinds::ALL, |all, value| all.and(Kinds::of(value.as_bytes()))).narrowest()
    }

    #[test]
    fn a_number_that_would_be_written_otherwise_is_text() {
        for value in [
            "00013", "+5", "-0", "-0.0", ".5", "5.", "1E5", "1e5", "0x1F", "1,5", "1,234.50", "$5", " 5", "5 ",
            "1_000", "",
        ] {
            assert_eq!(of(&["7", value]), "text", "{value}");
        }
        assert_eq!(of(&["0", "-1", "9223372036854775807", "-9223372036854775808"]), "bigint");
        assert_eq!(of(&["9223372036854775808", "1"]), "numeric");
        assert_eq!(of(&["1.0", "1", "1.50", "0.000", "NaN"]), "numeric");
        assert_eq!(of(&["1".repeat(131_073).as_str()]), "text");
    }

    #[test]
    fn a_double_is_what_postgres_writes() {
        for value in ["1e+15", "1e-05", "1.5e-07", "3.141592653589793e+200", "Infinity", "-Infinity"] {
            assert_eq!(of(&["0.5", value]), "double precision", "{value}");
        }
        assert_eq!(of(&["1e-05", "0.30000000000000004"]), "double precision");
        // 1e23 and 5e22 lie between two doubles; the others have digits or exponents that PostgreSQL does not write.
        for value in [
            "1e+23",
            "5e+22",
            "1e+14",
            "1e-04",
            "1e-5",
            "10e+15",
            "1.0e+15",
            "1e+015",
            "1.0",
            "0.30000000000000001",
            "1e+400",
        ] {
            assert_eq!(of(&["1e-05", value]), "text", "{value}");
        }
    }

    #[test]
    fn words_are_not_truth_values() {
        for values in
            [&["NO"][..], &["no", "yes"], &["on", "off"], &["TRUE", "FALSE"], &["true", "t"], &["f"], &["t", "t"]]
        {
            assert_eq!(of(values), "text", "{values:?}");
        }
        assert_eq!((of(&["true"]), of(&["t", "f"]), of(&["1", "0"])), ("boolean", "boolean", "bigint"));
    }

    #[test]
    fn a_day_or_a_time_is_written_in_one_way() {
        assert_eq!(of(&["2024-02-29", "0001-01-01"]), "date");
        for value in
            ["2026-02-29", "2026-13-01", "0000-01-01", "26-01-01", "2026-1-1", "31/12/2026", "20260101x", "infinity"]
        {
            assert_eq!(of(&["2026-01-01", value]), "text", "{value}");
        }
        for values in [
            &["2026-01-01 00:00:00", "2026-01-01 10:00:00.12"][..],
            &["2026-01-01T00:00:00", "2026-01-01T00:00:00.000001"],
            &["2026-01-01T00:00:00.000", "2026-01-01T00:00:00.120"],
            &["2026-01-01 10:00", "2026-01-01 23:59"],
            &["2026-01-01 10:00:00", "2026-01-01 10:00:00.120000"],
            &["2026-01-01T10:00:00", "2026-01-01T10:00:00.120", "2026-01-01T10:00:00.120001"],
        ] {
            assert_eq!(of(values), "timestamp", "{values:?}");
        }
        for zone in ["Z", "+00", "+00:00", "+0000"] {
            assert_eq!(of(&[&format!("2026-01-01T10:00:00{zone}")]), "timestamptz");
        }
    }

    #[test]
    fn a_time_that_would_be_another_or_is_written_in_two_ways_is_text() {
        let first = "2026-01-01 10:00:00";
        for value in [
            "2026-01-01 24:00:00",
            "2026-01-01 10:00:60",
            "2026-01-01 10:00:00.1234567",
            "2026-01-01 10:00:00.",
            "2026-01-01T10:00:00",
            "2026-01-01",
            "2026-01-01 10:00",
            "2026-01-01 10:00:00Z",
            "2026-01-01 10:00:00 UTC",
            "2026-01-01 10:00:00.10",
        ] {
            assert_eq!(of(&[first, value]), "text", "{value}");
        }
        for zone in ["+01", "-00", "+05:30", "z", "-05"] {
            assert_eq!(of(&[&format!("{first}{zone}")]), "text", "{zone}: the offset would be lost");
        }
        assert_eq!(of(&["2026-01-01 10:00:00Z", "2026-01-01 10:00:00+00"]), "text");
    }

    #[test]
    fn a_uuid_is_in_small_letters() {
        assert_eq!(of(&["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]), "uuid");
        assert_eq!(of(&["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"]), "text");
        assert_eq!(of(&["a0eebc999c0b4ef8bb6d6bb9bd380a11"]), "text");
    }

    #[test]
    fn a_type_that_was_chosen_holds_or_not() {
        let chosen = ["1", "2"].iter().fold(Kinds::ALL, |all, value| all.and(Kinds::of(value.as_bytes())));
        assert!(chosen.has("bigint") && Kinds::from_bits(chosen.bits()) == chosen);
        let now = chosen.and(Kinds::of(b"1.5"));
        assert!(!now.has("bigint") && now.has("numeric") && now.has("text"));
    }
}
