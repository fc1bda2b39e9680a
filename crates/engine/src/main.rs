//! pgdyno-engine (skeleton)
fn main() {}
