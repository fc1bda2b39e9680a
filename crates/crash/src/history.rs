//! An index over a log: its requests, and the writers of each block in the order in which they came.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::log::{What, WriteLog};

/// The device's logical block: every request consists of whole ones.
pub const BLOCK_BYTES: u64 = 4096;

/// A write or a discard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the volume.
    pub volume: u8,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Where its bytes are in the log's data; `None` for a discard.
    pub data: Option<u64>,
    /// Number of the event by which it came.
    pub came: u32,
    /// Number of the event by which it was answered.
    pub answered: Option<u32>,
}

/// A log and the index over it.
#[derive(Debug)]
pub struct History {
    log: WriteLog,
    requests: Vec<Request>,
    /// By volume and block, the requests that touched it.
    blocks: Vec<BTreeMap<u64, Vec<u32>>>,
    /// Of each block of the log's data, in the order of the data; with its place on the volume in it.
    digests: BTreeMap<u64, Vec<u128>>,
}

impl History {
    /// Makes the index.
    pub fn new(log: WriteLog) -> Self {
        let mut requests: Vec<Request> = Vec::new();
        let mut blocks = vec![BTreeMap::<u64, Vec<u32>>::new(); log.header().volumes.len()];
        let mut digests = BTreeMap::new();
        let mut by_event = BTreeMap::new();
        for (came, event) in (0..).zip(log.events()) {
            let number = requests.len() as u32;
            match event.what {
                What::Write { volume, offset, len, data } => {
                    let len = u64::from(len);
                    by_event.insert(came, number);
                    requests.push(Request { volume, offset, len, data: Some(data), came, answered: None });
                    for block in offset / BLOCK_BYTES..(offset + len) / BLOCK_BYTES {
                        blocks[usize::from(volume)].entry(block).or_default().push(number);
                    }
                    let places = (offset / BLOCK_BYTES..).zip(log.bytes(data, len as u32).chunks(BLOCK_BYTES as usize));
                    digests.insert(data, places.map(|(block, bytes)| digest(volume, block, bytes)).collect());
                }
                What::Discard { volume, offset, len } => {
                    by_event.insert(came, number);
                    requests.push(Request { volume, offset, len, data: None, came, answered: None });
                    // A block that was never written reads as zeros anyway.
                    let range = offset / BLOCK_BYTES..(offset + len) / BLOCK_BYTES;
                    for (_, writers) in blocks[usize::from(volume)].range_mut(range) {
                        writers.push(number);
                    }
                }
                What::Answer { request } => {
                    if let Some(number) = by_event.get(&request) {
                        requests[*number as usize].answered = Some(came);
                    }
                }
                What::Flush { .. } | What::Mark { .. } => {}
            }
        }
        Self { log, requests, blocks, digests }
    }

    /// The log.
    pub fn log(&self) -> &WriteLog {
        &self.log
    }

    /// Its writes and discards, in the order in which they came.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The blocks of a volume that were ever written, each with its requests.
    pub(crate) fn blocks(&self, volume: usize) -> &BTreeMap<u64, Vec<u32>> {
        &self.blocks[volume]
    }

    /// The bytes of a request in a block; `None` for zeros.
    pub(crate) fn bytes(&self, request: &Request, block: u64) -> Option<&[u8]> {
        let within = block * BLOCK_BYTES - request.offset;
        request.data.map(|data| self.log.bytes(data + within, BLOCK_BYTES as u32))
    }

    /// The digest of a request's bytes in a block; 0 for zeros.
    pub(crate) fn digest(&self, request: &Request, block: u64) -> u128 {
        let within = (block - request.offset / BLOCK_BYTES) as usize;
        request.data.map_or(0, |data| self.digests[&data][within])
    }
}

/// A digest of a block's bytes and of its place, so that those of all blocks can be added up.
pub(crate) fn digest(volume: u8, block: u64, bytes: &[u8]) -> u128 {
    let mut hash = Sha256::new();
    hash.update([volume]);
    hash.update(block.to_le_bytes());
    hash.update(bytes);
    let found = hash.finalize();
    u128::from_le_bytes(std::array::from_fn(|i| found[i]))
}
