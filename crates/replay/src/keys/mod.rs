//! Keys that the server gives: this run's in the places of the captured ones, and statements behind those that make their keys.
//!
//! ```text
//! literals, key, uses: values of a statement   makers: which statements make keys   learn, sequence: what they made, from the capture alone
//!     ->  links: what was learned, fit: whether the database is that of the begin  ->  exchange: values are exchanged, and waited for, while statements are sent
//! ```

mod exchange;
mod fit;
mod key;
mod learn;
mod links;
mod literals;
mod makers;
mod sequence;
mod uses;

pub(crate) use exchange::{Exchange, KeysSpec, Needed, Rows};
pub(crate) use key::{Key, Place};
pub(crate) use links::Links;
pub(crate) use makers::Wanted;
pub(crate) use uses::ended_us;
