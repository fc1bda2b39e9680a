//! The tests of the crate, as one program.

#![allow(missing_docs, reason = "tests are read by their names")]

mod draws;
mod made;
mod readings;
mod states;
