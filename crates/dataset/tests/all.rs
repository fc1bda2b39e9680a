//! What data sets are made of.

mod imdb;
mod tables;
mod tpcc;
mod tpcc_laws;
mod tpch;
