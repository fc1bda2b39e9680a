//! Values as the server's log writes them: `$1 = 'it''s', $2 = NULL`.

use std::borrow::Cow;

/// How a value ends that `log_parameter_max_length` has cut.
const CUT: &str = "...";

/// Values of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Values<'a> {
    /// In order; NULL is none.
    pub values: Vec<Option<Cow<'a, str>>>,
    /// How many end as a value does that the server has cut. One that the application sent so looks the same.
    pub cut: u32,
}

/// Reads the list. None if it is anything else.
pub(crate) fn values(text: &str) -> Option<Values<'_>> {
    let mut found = Values::default();
    let mut rest = text;
    loop {
        let number = found.values.len() + 1;
        rest = rest.strip_prefix('$')?.strip_prefix(number.to_string().as_str())?.strip_prefix(" = ")?;
        if let Some(after) = rest.strip_prefix("NULL") {
            found.values.push(None);
            rest = after;
        } else {
            let (value, after) = quoted(rest.strip_prefix('\'')?)?;
            found.cut += u32::from(value.ends_with(CUT));
            found.values.push(Some(value));
            rest = after;
        }
        if rest.is_empty() {
            return Some(found);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

/// A value up to its closing apostrophe, with doubled ones undone, and what is behind it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let bytes = text.as_bytes();
    let (mut at, mut doubled) = (0, false);
    loop {
        at += memchr::memchr(b'\'', &bytes[at..])?;
        if bytes.get(at + 1) != Some(&b'\'') {
            let value = &text[..at];
            let value = if doubled { Cow::Owned(value.replace("''", "'")) } else { Cow::Borrowed(value) };
            return Some((value, &text[at + 1..]));
        }
        doubled = true;
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As `BuildParamLogString` of PostgreSQL writes them.
    fn written(values: &[Option<String>]) -> String {
        let one = |(index, value): (usize, &Option<String>)| match value {
            Some(value) => format!("${} = '{}'", index + 1, value.replace('\'', "''")),
            None => format!("${} = NULL", index + 1),
        };
        values.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were(
            values_sent in prop::collection::vec(
                prop::option::of(prop_oneof![any::<String>(), Just("', $2 = '".to_owned()), Just("'''".to_owned())]), 1..40),
        ) {
            let text = written(&values_sent);
            let found = values(&text).unwrap();
            let found: Vec<_> = found.values.into_iter().map(|value| value.map(Cow::into_owned)).collect();
            prop_assert_eq!(found, values_sent);
        }
    }

    #[test]
    fn a_cut_value_is_counted_and_a_torn_list_is_none() {
        assert_eq!(values("$1 = 'abc...', $2 = 'x'").unwrap().cut, 1);
        for torn in ["", "$1 = 'abc", "$1 = 'a', $2", "$2 = 'a'", "$1 = 'a' $2 = 'b'", "$1 = 'a', "] {
            assert_eq!(values(torn), None, "{torn}");
        }
    }
}
