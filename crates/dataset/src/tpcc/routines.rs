//! The routines in the server. What they do is the profile's; the text is pgdyno's own.

use pgdyno_workload::tpcc::{Profile, Routines, SCHEMA};

/// One for each type of transaction.
pub(super) const NAMES: [&str; 5] = ["neword", "payment", "delivery", "slev", "ostat"];

const HAMMERDB: [&str; 5] = [
    include_str!("routines/hammerdb/neword.sql"),
    include_str!("routines/hammerdb/payment.sql"),
    include_str!("routines/hammerdb/delivery.sql"),
    include_str!("routines/hammerdb/slev.sql"),
    include_str!("routines/hammerdb/ostat.sql"),
];
const SPEC: [&str; 5] = [
    include_str!("routines/spec/neword.sql"),
    include_str!("routines/spec/payment.sql"),
    include_str!("routines/spec/delivery.sql"),
    include_str!("routines/spec/slev.sql"),
    include_str!("routines/spec/ostat.sql"),
];

/// Statements that make them; none where clients send what is in them. A function gives its results as a row, a procedure in places
/// of the call.
pub(super) fn create(profile: Profile, routines: Routines) -> Vec<String> {
    let texts = if profile == Profile::Spec { SPEC } else { HAMMERDB };
    let (routine, result) = match routines {
        Routines::Functions => ("FUNCTION", "OUT"),
        Routines::Procedures => ("PROCEDURE", "INOUT"),
        Routines::Statements => return Vec::new(),
    };
    let made = |text: &str| text.replace("{ROUTINE}", routine).replace("{RESULT}", result).replace("{SCHEMA}", SCHEMA);
    texts.into_iter().map(made).collect()
}
