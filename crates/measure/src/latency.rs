//! A distribution of times.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

/// 0.1 % of the value.
const DIGITS: u8 = 3;

/// Whole numbers of one unit of time, with three significant digits.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u32>);

/// Figures for readers that have no decoder.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// How many values there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub p50: u64,
    /// The value that one in a hundred exceeds.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Latency {
    /// An empty one. What is above `most` is counted as `most`.
    pub fn new(most: u64) -> Self {
        Self(Histogram::new_with_bounds(1, most, DIGITS).expect("the bounds are in order"))
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    /// Forgets all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Adds the values of another one with the same bounds.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Base64 of HDR's compressed V2 encoding, or nothing when there is no value.
    pub fn encoded(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("a buffer takes all bytes");
        Some(STANDARD.encode(bytes))
    }

    /// Count, mean, median, 99th percentile and maximum.
    pub fn figures(&self) -> Figures {
        let at = |quantile: f64| self.0.value_at_quantile(quantile);
        Figures { count: self.0.len(), mean: self.0.mean(), p50: at(0.5), p99: at(0.99), max: self.0.max() }
    }
}
