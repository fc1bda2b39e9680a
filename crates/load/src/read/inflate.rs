//! Decompression, on threads of its own.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flate2::bufread::GzDecoder;

use crate::read::pool::{Block, Blocks, Content, Filled};
use crate::spec::Compression;

/// Blocks that may lie ready: a planner that waits for a chunk to be taken in does not keep its decompressor waiting at once.
const BLOCKS_READY: usize = 8;
/// Read from the file at once.
const STORED_BYTES: usize = 128 << 10;
/// `xz -9` takes 65 MiB to decompress (xz's manual); xz makes no file that needs more by itself.
const XZ_MEMORY_BYTES_MAX: u64 = 80 << 20;

/// The content of a source. That of a compressed one is made on another thread, which ends when its reader is gone.
pub(crate) fn open(
    compression: Compression,
    input: impl Read + Send + 'static,
    blocks: &Arc<Blocks>,
) -> io::Result<Box<dyn Content + Send>> {
    let buffered = |input| BufReader::with_capacity(STORED_BYTES, input);
    Ok(match compression {
        Compression::None | Compression::Auto => Box::new(Filled::new(input, blocks)),
        Compression::Gzip => Threaded::start(Gzip::new(buffered(input)), blocks)?,
        Compression::Bzip2 => Threaded::start(bzip2::bufread::MultiBzDecoder::new(buffered(input)), blocks)?,
        Compression::Xz => {
            let concatenated = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, concatenated)?;
            Threaded::start(liblzma::bufread::XzDecoder::new_stream(buffered(input), stream), blocks)?
        }
        // It keeps up to 128 MiB of history, and refuses files that want more, as the program does.
        Compression::Zstd => Threaded::start(zstd::stream::read::Decoder::with_buffer(buffered(input))?, blocks)?,
    })
}

/// The members of a gzip file, one behind the other. Zeros up to the end of the file are padding, as of tapes, which gzip(1)
/// ignores too; anything else behind a member is an error.
struct Gzip<R> {
    /// None once the file is over.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let mut input = self.member.take().map(GzDecoder::into_inner).expect("a member is being read");
            self.member = has_more(&mut input)?.then(|| GzDecoder::new(input));
        }
        Ok(0)
    }
}

/// Whether another member follows. Zeros that something else follows are not padding.
fn has_more(input: &mut impl BufRead) -> io::Result<bool> {
    let mut padded = false;
    loop {
        let next = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            next => next?,
        };
        let Some(first) = next.first() else { return Ok(false) };
        if *first != 0 {
            return if padded {
                Err(io::Error::other("other bytes follow the padding behind a gzip member"))
            } else {
                Ok(true)
            };
        }
        padded = true;
        let zeros = next.iter().take_while(|byte| **byte == 0).count();
        input.consume(zeros);
    }
}

/// What another thread makes, in order, in the memory from which it is sent.
struct Threaded {
    /// None is the end. That the other thread is gone without it is an error, and not the end.
    made: Receiver<io::Result<Option<Block>>>,
    ended: bool,
}

impl Threaded {
    fn start(input: impl Read + Send + 'static, blocks: &Arc<Blocks>) -> io::Result<Box<dyn Content + Send>> {
        let (send, made) = sync_channel(BLOCKS_READY);
        let content = Filled::new(input, blocks);
        std::thread::Builder::new().name("inflate".to_owned()).spawn(move || make(content, &send))?;
        Ok(Box::new(Self { made, ended: false }))
    }
}

/// Reads until the end, an error, or until its reader is gone.
fn make(mut content: impl Content, send: &SyncSender<io::Result<Option<Block>>>) {
    loop {
        let next = content.next();
        let is_last = !matches!(next, Ok(Some(_)));
        if send.send(next).is_err() || is_last {
            return;
        }
    }
}

impl Content for Threaded {
    fn next(&mut self) -> io::Result<Option<Block>> {
        if self.ended {
            return Ok(None);
        }
        let next = self.made.recv().map_err(|_| io::Error::other("the decompression thread ended unexpectedly"))?;
        self.ended = !matches!(next, Ok(Some(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn unpacked(compression: Compression, stored: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut content = open(compression, io::Cursor::new(stored), &Arc::default())?;
        let mut found = Vec::new();
        while let Some(block) = content.next()? {
            found.extend_from_slice(block.bytes());
        }
        assert!(matches!(content.next(), Ok(None)), "the end stays the end");
        Ok(found)
    }

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
            assert!(unpacked(compression, stored).unwrap() == content, "{compression:?}");
        }
    }

    #[test]
    fn gzip_may_be_padded_with_zeros_and_with_nothing_else() {
        let (content, zeros) = (content(), vec![0; 3 * STORED_BYTES + 1]);
        let stored = packed(Compression::Gzip, &content);
        let padded = unpacked(Compression::Gzip, [stored.clone(), zeros.clone()].concat()).unwrap();
        assert!(padded == content);
        for rest in [&b"x"[..], &stored] {
            let more = [stored.clone(), zeros.clone(), rest.to_vec()].concat();
            assert!(unpacked(Compression::Gzip, more).is_err(), "zeros in the middle");
        }
        assert!(unpacked(Compression::Gzip, [stored, b"garbage".to_vec()].concat()).is_err());
        assert!(unpacked(Compression::Gzip, zeros).is_err(), "zeros alone are no gzip file");
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
                assert!(unpacked(compression, broken).is_err(), "{compression:?}");
            }
        }
    }

    #[test]
    fn a_decompressor_that_is_gone_is_an_error_and_not_the_end() {
        let (_, made) = sync_channel(1);
        assert!(Threaded { made, ended: false }.next().is_err());
    }
}
