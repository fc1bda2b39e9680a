//! Sizes and counts as people write and read them.

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const TIB: u64 = 1 << 40;

const BINARY: [(&str, u64); 4] = [("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)];
const DECIMAL: [(&str, u64); 4] = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];

/// Why a size could not be read, with a size that may have been meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SizeProblem {
    pub problem: String,
    pub meant_bytes: Option<u64>,
}

/// Reads `100GiB`. A number too large to hold becomes `u64::MAX`, which every rule refuses as too large.
pub(crate) fn parse_size(text: &str) -> Result<u64, SizeProblem> {
    let refuse = |problem: &str, meant_bytes| Err(SizeProblem { problem: problem.to_owned(), meant_bytes });
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let whole = unit.is_empty() || unit.starts_with(|c: char| c.is_ascii_alphabetic());
    let Some(number) = parse_count(number).filter(|_| whole) else {
        return refuse("a size is a whole number with a unit (KiB, MiB, GiB, TiB)", None);
    };
    let times = |bytes: u64| number.saturating_mul(bytes);
    if let Some((_, bytes)) = BINARY.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        return Ok(times(*bytes));
    }
    if let Some(i) = DECIMAL.iter().position(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        let (decimal, binary) = (DECIMAL[i].0, BINARY[i].0);
        let why = format!("{decimal} is a decimal unit, and volumes are sold and made in binary ones: write {binary}");
        return refuse(&why, Some(times(BINARY[i].1)));
    }
    if unit.is_empty() {
        return refuse("the unit is missing (KiB, MiB, GiB, TiB)", Some(times(GIB)));
    }
    let short = BINARY.iter().find(|(name, _)| name[..1].eq_ignore_ascii_case(unit));
    refuse("the unit of a size is KiB, MiB, GiB or TiB", short.map(|(_, bytes)| times(*bytes)))
}

/// Reads ASCII digits and nothing else. A number too large to hold becomes `u64::MAX`.
pub(crate) fn parse_count(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// The shortest exact form of a size that a specification can have: `100GiB`.
pub fn size_key(bytes: u64) -> String {
    let (number, unit) = in_largest_unit(bytes);
    format!("{number}{unit}")
}

/// The same for a sentence: `1,536 MiB`.
pub(crate) fn size_phrase(bytes: u64) -> String {
    if bytes == u64::MAX {
        return "more than 16,777,215 TiB".to_owned();
    }
    let (number, unit) = in_largest_unit(bytes);
    format!("{} {unit}", count_phrase(number))
}

/// `16,000`, for a sentence.
pub(crate) fn count_phrase(count: u64) -> String {
    if count == u64::MAX {
        return "more than 10^19".to_owned();
    }
    let digits = count.to_string();
    let head = digits.len() % 3;
    let mut phrase = digits[..head].to_owned();
    for group in digits.as_bytes()[head..].chunks(3) {
        if !phrase.is_empty() {
            phrase.push(',');
        }
        phrase.extend(group.iter().map(|&digit| char::from(digit)));
    }
    phrase
}

/// What the user wrote, quoted, escaped, and cut when it is long.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{:?}", start + "...")
}

fn in_largest_unit(bytes: u64) -> (u64, &'static str) {
    let exact = |&&(_, unit): &&(&str, u64)| bytes >= unit && bytes.is_multiple_of(unit);
    BINARY.iter().find(exact).map_or((bytes / KIB, "KiB"), |(name, unit)| (bytes / unit, name))
}
