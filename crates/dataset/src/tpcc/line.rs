//! One line of COPY's text format, field by field, and the texts of TPC-C (5.11, 4.3.2).

use pgdyno_workload::{Random, write_integer};

/// When all rows were made: a row is a function of its number and the seed, and has no clock.
pub(crate) const INSTANT: &[u8] = b"2000-01-01 00:00:00+00";
const CHARACTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// A draw of 64 bits holds ten numbers of six bits.
const PER_DRAW: u32 = 10;
/// Room for these, a power of two.
const MADE: usize = 16;

/// What two numbers of six bits give. One beyond the last character gives none, so that all have the same chance.
#[derive(Clone, Copy)]
struct Pair {
    characters: [u8; 2],
    count: u8,
}

/// By the twelve bits of both.
static PAIRS: [Pair; 4096] = pairs();

const fn pairs() -> [Pair; 4096] {
    let mut found = [Pair { characters: [0; 2], count: 0 }; 4096];
    let mut bits = 0;
    while bits < found.len() {
        let mut pair = Pair { characters: [0; 2], count: 0 };
        let (first, second) = (bits & 63, bits >> 6);
        if first < CHARACTERS.len() {
            pair.characters[0] = CHARACTERS[first];
            pair.count = 1;
        }
        if second < CHARACTERS.len() {
            pair.characters[pair.count as usize] = CHARACTERS[second];
            pair.count += 1;
        }
        found[bits] = pair;
        bits += 1;
    }
    found
}

/// A line that is being written.
pub(crate) struct Line<'a> {
    out: &'a mut Vec<u8>,
    begun: bool,
}

impl<'a> Line<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, begun: false }
    }

    /// The next field, by what appends it.
    pub fn field(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        if self.begun {
            self.out.push(b'\t');
        }
        self.begun = true;
        write(self.out);
        self
    }

    pub fn integer(&mut self, value: i64) -> &mut Self {
        self.field(|out| write_integer(value, out))
    }

    pub fn fixed(&mut self, text: &[u8]) -> &mut Self {
        self.field(|out| out.extend_from_slice(text))
    }

    pub fn null(&mut self) -> &mut Self {
        self.fixed(b"\\N")
    }

    /// A number of hundredths.
    pub fn cents(&mut self, value: i64) -> &mut Self {
        self.field(|out| write_decimal(value, 2, out))
    }

    /// A number of ten-thousandths.
    pub fn share(&mut self, value: i64) -> &mut Self {
        self.field(|out| write_decimal(value, 4, out))
    }

    /// Random digits and letters, `min` to `max` of them.
    pub fn text(&mut self, random: &mut Random, min: i64, max: i64) -> &mut Self {
        self.field(|out| write_text(random, min, max, out))
    }

    /// Random digits.
    pub fn digits(&mut self, random: &mut Random, count: u32) -> &mut Self {
        self.field(|out| (0..count).for_each(|_| out.push(b'0' + random.up_to(9) as u8)))
    }

    /// Two streets, a city, a state and a code of four random digits and 11111.
    pub fn address(&mut self, random: &mut Random) -> &mut Self {
        self.text(random, 10, 20).text(random, 10, 20).text(random, 10, 20);
        self.field(|out| (0..2).for_each(|_| out.push(b'A' + random.up_to(25) as u8)));
        self.field(|out| {
            (0..4).for_each(|_| out.push(b'0' + random.up_to(9) as u8));
            out.extend_from_slice(b"11111");
        })
    }

    /// A text of 26 to 50 characters, in `per_100_000` rows of which `word` stands somewhere in the place of `replaced`
    /// characters.
    pub fn branded(&mut self, random: &mut Random, per_100_000: u64, word: &[u8], replaced: usize) -> &mut Self {
        self.field(|out| {
            let begin = out.len();
            write_text(random, 26, 50, out);
            if random.up_to(99_999) < per_100_000 {
                let last = out.len() - begin - replaced;
                let at = begin + random.up_to(last as u64) as usize;
                out.splice(at..at + replaced, word.iter().copied());
            }
        })
    }

    pub fn end(&mut self) {
        self.out.push(b'\n');
    }
}

fn write_decimal(value: i64, places: u32, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let (value, scale) = (value.abs(), 10_i64.pow(places));
    write_integer(value / scale, out);
    out.push(b'.');
    for place in (0..places).rev() {
        out.push(b'0' + (value / 10_i64.pow(place) % 10) as u8);
    }
}

/// Random characters, `min` to `max` of them.
fn write_text(random: &mut Random, min: i64, max: i64, out: &mut Vec<u8>) {
    let mut left = random.between(min, max) as usize;
    while left > 0 {
        let (mut bits, mut made, mut count) = (random.bits(), [0; MADE], 0);
        for _ in 0..PER_DRAW / 2 {
            let pair = &PAIRS[(bits & 4095) as usize];
            made[count % MADE] = pair.characters[0];
            made[(count + 1) % MADE] = pair.characters[1];
            count += usize::from(pair.count);
            bits >>= 12;
        }
        // All of it and then less: a copy of a length that the compiler knows is one store.
        let end = out.len() + count.min(left);
        out.extend_from_slice(&made);
        out.truncate(end);
        left -= count.min(left);
    }
}
