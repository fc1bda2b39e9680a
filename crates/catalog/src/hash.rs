//! A fingerprint of the model, for the header of a submit log: a log replays only on the model that recorded it.

use serde::Serialize;

/// Raise it with every change of the volume model that moves a completion for unchanged parameters.
pub const MODEL_VERSION: u32 = 3;

/// 64-bit FNV-1a over the model's version and the parameters' JSON, whose field order is that of the Rust types.
/// The same on every machine and with every compiler, which the standard library's hasher does not promise.
pub fn model_hash(params: &impl Serialize) -> u64 {
    let json = serde_json::to_vec(params).expect("integers, booleans and unit variants always have a JSON form");
    fnv1a(fnv1a(FNV_OFFSET, &MODEL_VERSION.to_le_bytes()), &json)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the algorithm's published test suite (draft-eastlake-fnv).
    #[test]
    fn fnv1a_matches_its_published_vectors() {
        assert_eq!(fnv1a(FNV_OFFSET, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_OFFSET, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(FNV_OFFSET, b"foobar"), 0x8594_4171_f739_67e8);
    }
}
