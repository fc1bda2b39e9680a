//! The values of pgbench's script language.

use crate::template::write_integer;
use std::io::Write as _;

/// A value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A whole number of 64 bits.
    Integer(i64),
    /// A number in double precision.
    Double(f64),
}

/// What a variable holds.
#[derive(Debug, Default, PartialEq)]
pub enum Variable {
    /// Nothing: it was never set.
    #[default]
    Undefined,
    /// The value of an expression.
    Value(Value),
    /// What came from outside: a definition, or a result of the server. An expression makes a value of it.
    Text(Vec<u8>),
}

impl Clone for Variable {
    fn clone(&self) -> Self {
        match self {
            Self::Undefined => Self::Undefined,
            Self::Value(value) => Self::Value(*value),
            Self::Text(text) => Self::Text(text.clone()),
        }
    }

    /// Keeps the memory of a text: variables are set back before each transaction that may be tried again.
    fn clone_from(&mut self, source: &Self) {
        match (self, source) {
            (Self::Text(text), Self::Text(other)) => text.clone_from(other),
            (variable, other) => *variable = other.clone(),
        }
    }
}

/// 2^63: the first double above all whole numbers of 64 bits.
const INTEGER_END: f64 = 9_223_372_036_854_775_808.0;

impl Value {
    /// The value that a text means: NULL, a boolean, a whole number or a double; `None` if it means nothing.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        if text.eq_ignore_ascii_case("null") {
            return Some(Self::Null);
        }
        let begins = |word: &str| text.len() <= word.len() && word[..text.len()].eq_ignore_ascii_case(text);
        if text.is_empty() || !text.is_ascii() {
            return None;
        }
        // "o" alone could be either of "on" and "off".
        match () {
            () if begins("true") || begins("yes") || text.eq_ignore_ascii_case("on") => Some(Self::Boolean(true)),
            () if begins("false") || begins("no") || (text.len() > 1 && begins("off")) => Some(Self::Boolean(false)),
            () => Self::number(text),
        }
    }

    fn number(text: &str) -> Option<Self> {
        if let Ok(value) = text.parse() {
            return Some(Self::Integer(value));
        }
        text.parse().ok().map(Self::Double)
    }

    /// Whether a condition holds: a boolean itself, a number that is not 0; NULL does not.
    pub fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => value,
            Self::Integer(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// As a whole number; a double is rounded to the nearest, halves to even.
    pub fn integer(self) -> Result<i64, String> {
        match self {
            Self::Integer(value) => Ok(value),
            Self::Double(value) => {
                let rounded = value.round_ties_even();
                if (-INTEGER_END..INTEGER_END).contains(&rounded) {
                    Ok(rounded as i64)
                } else {
                    Err(format!("{value} does not fit into a whole number of 64 bits"))
                }
            }
            other => Err(format!("a {} is no whole number", other.kind())),
        }
    }

    /// As a number in double precision.
    pub fn double(self) -> Result<f64, String> {
        match self {
            Self::Integer(value) => Ok(value as f64),
            Self::Double(value) => Ok(value),
            other => Err(format!("a {} is no number", other.kind())),
        }
    }

    /// As a boolean: only a boolean is one.
    pub fn boolean(self) -> Result<bool, String> {
        match self {
            Self::Boolean(value) => Ok(value),
            other => Err(format!("a {} is no boolean: compare it with something", other.kind())),
        }
    }

    /// The kind of value, for messages.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "whole number",
            Self::Double(_) => "double",
        }
    }

    /// Appends the value as pgbench writes it into a statement; doubles with 15 significant digits.
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Self::Integer(value) => write_integer(value, out),
            Self::Double(value) => write_double(value, out),
        }
    }
}

/// How many significant digits a double is written with: those that survive from text to double and back (C's DBL_DIG).
const DIGITS: i32 = 15;

/// Appends a double as `%.15g` of PostgreSQL's own printf does.
fn write_double(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        let text: &[u8] = if value.is_nan() { b"NaN" } else { b"Infinity" };
        if value < 0.0 {
            out.push(b'-');
        }
        out.extend_from_slice(text);
        return;
    }
    let begin = out.len();
    write!(out, "{:.*e}", DIGITS as usize - 1, value).expect("a vector takes all bytes");
    let mark = begin + out[begin..].iter().position(|&byte| byte == b'e').expect("the form has an exponent");
    let exponent: i32 = std::str::from_utf8(&out[mark + 1..]).expect("digits").parse().expect("an exponent");
    if (-4..DIGITS).contains(&exponent) {
        out.truncate(begin);
        let decimals = (DIGITS - 1 - exponent) as usize;
        write!(out, "{value:.decimals$}").expect("a vector takes all bytes");
        trim_zeros(begin, out);
        return;
    }
    out.truncate(mark);
    trim_zeros(begin, out);
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "e{sign}{:02}", exponent.unsigned_abs()).expect("a vector takes all bytes");
}

fn trim_zeros(begin: usize, out: &mut Vec<u8>) {
    if !out[begin..].contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_c_does() {
        // Expected: printf of C with "%.15g", and PostgreSQL's words for what is not finite.
        let cases = [
            (0.1, "0.1"),
            (1.0, "1"),
            (1.0 / 3.0, "0.333333333333333"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (-0.0001, "-0.0001"),
            (0.0, "0"),
            (100.0, "100"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            let mut out = Vec::new();
            Value::Double(value).write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn texts_mean_what_pgbench_takes_them_for() {
        let cases: [(&str, Option<Value>); 14] = [
            ("null", Some(Value::Null)),
            ("t", Some(Value::Boolean(true))),
            ("TRUE", Some(Value::Boolean(true))),
            ("y", Some(Value::Boolean(true))),
            ("on", Some(Value::Boolean(true))),
            ("o", None),
            ("of", Some(Value::Boolean(false))),
            ("no", Some(Value::Boolean(false))),
            ("-12", Some(Value::Integer(-12))),
            ("1e3", Some(Value::Double(1000.0))),
            ("99999999999999999999", Some(Value::Double(1e20))),
            ("", None),
            ("é", None),
            ("12 monkeys", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Value::from_text(text.as_bytes()), expected, "{text}");
        }
    }
}
