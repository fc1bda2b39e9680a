//! Seven files in the shape of IMDb's public data sets: their names, columns, nulls, ratios of rows, and skew.
//!
//! Nothing in them is IMDb's: titles and names are made of syllables. Where each figure comes from stands beside it; what is
//! published nowhere is an assumption, and said to be one. The profile is that of the public files of March 2026 (204,295,502
//! rows), the columns are those of IMDb's documentation of its non-commercial data sets.
//!
//! The rows of a title, or of a person, are a function of the seed, the file and the title's number alone. So files can be made
//! at the same time, and agree: the titles that one calls episodes have a parent in another.

mod counts;
mod data;
mod draw;
mod file;
mod ids;
mod person;
mod rows;
mod tables;
mod title;
mod words;
mod writers;

pub use data::Imdb;
pub use file::File;
pub use rows::files;
