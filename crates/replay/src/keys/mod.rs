//! Keys that the server gives: this run's in the places of the captured ones, and statements behind those that make their keys.
//!
//! ```text
//! catalogue: columns and sequences   parse, scope, roles, queries, writes: what stands at which place of a statement   texts: the same of all statements   decide: places that nothing proves
//! literals, key, uses: values of a statement   makers: which statements make keys   learn, in_session, sequence: what they made, from the capture alone
//!     ->  links: what was learned, fit: whether the database is that of the begin  ->  exchange: values are exchanged, and waited for, while statements are sent
//! ```

mod catalogue;
mod decide;
mod exchange;
mod fit;
mod in_session;
mod key;
mod learn;
mod links;
mod literals;
mod makers;
mod parse;
mod queries;
mod roles;
mod scope;
mod sequence;
mod texts;
mod uses;
mod writes;

pub(crate) use exchange::{Exchange, KeysSpec, Needed, Rows};
pub(crate) use key::{Key, Place};
pub(crate) use learn::{Asked, uncertain_us};
pub(crate) use links::{Links, Occurrence};
pub(crate) use makers::Wanted;
pub(crate) use uses::ended_us;
