//! What a client sends, and when.

mod arrivals;
mod distributions;
mod fuzz;
mod host;
mod scripts;
mod sysbench;
mod toy;
