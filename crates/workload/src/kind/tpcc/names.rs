//! What loading and driving have in common: how many rows there are, and how customers are called (TPC-C 5.11, 1.2 and 4.3.2).

/// The schema of the tables and routines.
pub const SCHEMA: &str = "pgdyno_tpcc";
/// Districts of a warehouse.
pub const DISTRICTS: i64 = 10;
/// Customers of a district.
pub const CUSTOMERS: i64 = 3_000;
/// Orders of a district that are loaded.
pub const ORDERS: i64 = 3_000;
/// Items; each warehouse has a row of stock for each.
pub const ITEMS: i64 = 100_000;
/// Different last names.
pub const LAST_NAMES: i64 = 1_000;
/// The largest number of a last name.
pub const NAME_LAST: i64 = LAST_NAMES - 1;
/// `A` of NURand for last names.
pub const NAME_BITS: i64 = 255;
/// `C` of NURand for the last names of rows that are loaded, and HammerDB's for those that are asked for. TPC-C lets each load
/// draw it; here it is the same for all, so that any run knows it.
pub const NAME_CONSTANT_LOADED: i64 = 123;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Appends the last name of a number from 0 to 999: a syllable for each digit.
pub fn write_last_name(number: i64, out: &mut Vec<u8>) {
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[digit.unsigned_abs() as usize].as_bytes());
    }
}
