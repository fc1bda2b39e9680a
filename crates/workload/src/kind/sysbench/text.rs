//! The texts of sysbench's tables, in the rows that they begin with and in those that transactions write.

use crate::random::Random;

/// Groups of eleven digits in `c`, with dashes between them: 119 characters.
pub const C_GROUPS: u32 = 10;
/// The same in `pad`: 59 characters.
pub const PAD_GROUPS: u32 = 5;
const GROUP_DIGITS: usize = 11;

/// Appends groups of eleven random digits with dashes between them.
pub fn write_groups(random: &mut Random, groups: u32, out: &mut Vec<u8>) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut rest = random.up_to(99_999_999_999);
        let begin = out.len();
        out.resize(begin + GROUP_DIGITS, b'0');
        for digit in out[begin..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}
