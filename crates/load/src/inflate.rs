//! Decompression, on threads of its own.

use std::io::{self, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use crate::order::Compression;

/// Handed over at once: enough that a hand-over costs nothing beside the decompression.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that may lie ready.
const BLOCKS: usize = 4;
/// Read from the file at once.
const STORED_BYTES: usize = 128 << 10;
/// `xz -9` takes 65 MiB to decompress (xz's manual); more than this is no file that xz makes by itself.
const XZ_MEMORY_BYTES_MAX: u64 = 80 << 20;

/// The content of a source. That of a compressed one is made on another thread, which ends when nobody reads any more.
pub(crate) fn open(compression: Compression, input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let stored = BufReader::with_capacity(STORED_BYTES, input);
    Ok(match compression {
        Compression::None | Compression::Auto => Box::new(stored),
        Compression::Gzip => Threaded::start(flate2::bufread::MultiGzDecoder::new(stored))?,
        Compression::Bzip2 => Threaded::start(bzip2::bufread::MultiBzDecoder::new(stored))?,
        Compression::Xz => {
            let concatenated = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, concatenated)?;
            Threaded::start(liblzma::bufread::XzDecoder::new_stream(stored, stream))?
        }
        // It keeps up to 128 MiB of history, and refuses files that want more, as the program does.
        Compression::Zstd => Threaded::start(zstd::stream::read::Decoder::with_buffer(stored)?)?,
    })
}

/// What another thread reads, in order.
struct Threaded {
    /// Blocks; an empty one is the end. That the other thread is gone without it is an error, and not the end.
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Blocks that are read, for the other thread to fill again.
    spare: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Threaded {
    fn start(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        let (send, blocks) = sync_channel(BLOCKS);
        let (spare, spares) = channel();
        std::thread::Builder::new().name("inflate".to_owned()).spawn(move || fill(input, &send, &spares))?;
        Ok(Box::new(Self { blocks, spare, block: Vec::new(), at: 0, ended: false }))
    }
}

/// Reads until the end, an error, or that nobody listens.
fn fill(mut input: impl Read, send: &SyncSender<io::Result<Vec<u8>>>, spares: &Receiver<Vec<u8>>) {
    loop {
        let mut block = spares.try_recv().unwrap_or_default();
        block.clear();
        let read = input.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block);
        let is_last = block.is_empty() || read.is_err();
        // What came before an error counts: its rows are whole.
        if let Err(error) = read {
            let sent = block.is_empty() || send.send(Ok(block)).is_ok();
            if sent {
                let _ = send.send(Err(error));
            }
            return;
        }
        if send.send(Ok(block)).is_err() || is_last {
            return;
        }
    }
}

impl Read for Threaded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() && !self.ended {
            let gone = |_| io::Error::other("the decompression ended by itself");
            let next = self.blocks.recv().map_err(gone)??;
            self.ended = next.is_empty();
            // A thread that has ended needs no blocks.
            let _ = self.spare.send(std::mem::replace(&mut self.block, next));
            self.at = 0;
        }
        let count = into.len().min(self.block.len() - self.at);
        into[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(compression: Compression, content: &[u8]) -> Vec<u8> {
        match compression {
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
                encoder.include_checksum(true).unwrap();
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Compression::None | Compression::Auto => content.to_vec(),
        }
    }

    fn content() -> Vec<u8> {
        (0..300_000_u32).flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 12).to_be_bytes()).collect()
    }

    const PACKED: [Compression; 4] = [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];

    #[test]
    fn several_members_are_one_content() {
        let content = content();
        for compression in PACKED {
            let (one, two) = content.split_at(700_001);
            let stored = [packed(compression, one), packed(compression, two)].concat();
            let mut found = Vec::new();
            open(compression, io::Cursor::new(stored)).unwrap().read_to_end(&mut found).unwrap();
            assert!(found == content, "{compression:?}");
        }
    }

    #[test]
    fn what_ends_too_early_or_is_damaged_is_an_error_and_not_the_end() {
        let content = content();
        for compression in PACKED {
            let stored = packed(compression, &content);
            let mut damaged = stored.clone();
            for byte in &mut damaged[stored.len() / 2..stored.len() / 2 + 8] {
                *byte = !*byte;
            }
            for broken in [stored[..stored.len() - 1].to_vec(), stored[..stored.len() / 2].to_vec(), damaged] {
                let mut found = Vec::new();
                let read = open(compression, io::Cursor::new(broken)).unwrap().read_to_end(&mut found);
                assert!(read.is_err(), "{compression:?} gave {} bytes", found.len());
            }
        }
    }
}
