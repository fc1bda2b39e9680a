//! Chunks into the table: sessions, how many and how fast, and the rows that the table refuses.

pub(crate) mod bisect;
pub(crate) mod copy;
pub(crate) mod locate;
pub(crate) mod rate_limit;
pub(crate) mod reject;
pub(crate) mod scaler;
pub(crate) mod sessions;
pub(crate) mod statement;
pub(crate) mod worker;
