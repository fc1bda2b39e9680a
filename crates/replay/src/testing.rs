//! What tests of several files have in common.

use pgdyno_capture::{Call, Ending, Protocol};

/// A statement that was sent as a text, and how it ended.
pub(crate) fn call(text: &str, ending: Ending) -> Call {
    Call {
        due_us: 0,
        protocol: Protocol::Text,
        name: String::new(),
        text: text.to_owned(),
        values: Vec::new(),
        transaction: 1,
        ending,
        without_values: false,
        cut: false,
        rows: None,
        answer: Vec::new(),
    }
}
