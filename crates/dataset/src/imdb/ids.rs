//! Identifiers: `tt0000001` and `nm0000001`, at least seven digits, with gaps as there.

use super::draw::Draw;

/// The largest `tconst` is about three times the number of titles, the largest `nconst` about an eighth above that of people
/// (public files of March 2026, rounded).
const TITLE_STEP: u64 = 3;
const PERSON_GAP: u64 = 8;
/// Of all people so many have a row in title.principals: 7.0 of 15.1 million there. They are evenly spread over all people.
const PARTICIPANTS: (u64, u64) = (463, 1000);
const DIGITS_MIN: usize = 7;

/// The people of a data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct People {
    count: u64,
}

impl People {
    pub(super) fn new(count: u64) -> Self {
        Self { count }
    }

    pub(super) fn count(self) -> u64 {
        self.count
    }

    /// Somebody with a part in a title; who is popular has many.
    pub(super) fn participant(self, draw: &mut Draw) -> u64 {
        let (share, of) = PARTICIPANTS;
        let participants = (self.count * share / of).max(1);
        (draw.popular(participants) * of / share).min(self.count - 1)
    }
}

/// Appends the identifier of a title, by its number from 0.
pub(super) fn write_title(title: u64, out: &mut Vec<u8>) {
    // The remainder by a hash of the number: gaps of one to five.
    let within = (title.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % TITLE_STEP;
    write_id(*b"tt", title * TITLE_STEP + within + 1, out);
}

/// Appends the identifier of a person, by their number from 0.
pub(super) fn write_person(person: u64, out: &mut Vec<u8>) {
    write_id(*b"nm", person + person / PERSON_GAP + 1, out);
}

fn write_id(prefix: [u8; 2], number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&prefix);
    let mut digits = [b'0'; 20];
    let (mut rest, mut first) = (number, digits.len());
    while rest > 0 || digits.len() - first < DIGITS_MIN {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: fn(u64, &mut Vec<u8>), number: u64) -> String {
        let mut out = Vec::new();
        write(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ids_grow_and_are_told_apart() {
        for write in [write_title, write_person] {
            let ids: Vec<String> = (0..5_000).map(|number| text(write, number)).collect();
            assert!(ids.windows(2).all(|two| two[0] < two[1]), "as texts too, while they are as long");
        }
        assert_eq!((text(write_person, 0).as_str(), text(write_person, 8).as_str()), ("nm0000001", "nm0000010"));
        assert_eq!(text(write_person, 99_999_999).len(), 11);
        assert!(text(write_title, 12_323_466).starts_with("tt369"));
    }
}
