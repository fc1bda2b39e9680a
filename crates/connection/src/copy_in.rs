//! Rows on their way into a COPY: from memory, or from a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde_json::json;

use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::wire;

/// A COPY that takes rows in.
pub struct CopyIn<'a> {
    exchange: &'a mut Exchange,
    /// What the server reported against rows that were sent.
    refusal: Option<Fault>,
    /// What is read of files that the kernel does not send by itself.
    spare: Vec<u8>,
}

impl<'a> CopyIn<'a> {
    /// The server waits for rows.
    pub(crate) fn new(exchange: &'a mut Exchange) -> Self {
        Self { exchange, refusal: None, spare: Vec::new() }
    }

    /// Sends bytes of rows without copying them. False when more is of no use: the server has refused some, which
    /// [`CopyIn::end`] returns, or the session is to stop.
    pub fn send(&mut self, rows: &[u8]) -> Result<bool, Fault> {
        if self.is_over() {
            return Ok(false);
        }
        wire::copy_data(&mut self.exchange.out, rows.len());
        self.exchange.flush_with(rows)?;
        self.goes_on()
    }

    /// As [`CopyIn::send`], of `length` bytes of a file. The kernel sends them from its page cache, which saves a copy out of it
    /// and one into it; what it does not send, as with TLS, is read and sent.
    ///
    /// The inner error is the file's: other bytes were sent in its place, and nothing of this COPY may be committed.
    pub fn send_file(&mut self, file: &File, at: u64, length: usize) -> Result<io::Result<bool>, Fault> {
        if self.is_over() {
            return Ok(Ok(false));
        }
        wire::copy_data(&mut self.exchange.out, length);
        let sent = self.exchange.flush_with_file(file, at, length)?;
        // The message was announced with this length, so something must fill it.
        self.spare.resize(length - sent, 0);
        let read = file.read_exact_at(&mut self.spare, at + sent as u64);
        self.exchange.flush_with(&self.spare)?;
        read.map_or_else(|error| Ok(Err(error)), |()| self.goes_on().map(Ok))
    }

    /// Ends the COPY; its rows are discarded if the session is to stop. Returns how many the server took.
    pub fn end(self) -> Result<u64, Fault> {
        let Self { exchange, refusal, .. } = self;
        if exchange.stopping() {
            wire::copy_fail(&mut exchange.out, "interrupted");
        } else {
            wire::copy_done(&mut exchange.out);
        }
        let end = exchange.flush().and_then(|()| exchange.end_of_answer());
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let tag = end?.tag;
        tag.strip_prefix("COPY ").and_then(|rows| rows.parse().ok()).ok_or_else(|| {
            Fault::new(
                format!("the server ended a COPY with `{tag}`, and did not say how many rows it took"),
                "check that a PostgreSQL server listens at that address, and what is between",
            )
            .coded("connection.copy.tag", json!({"tag": tag}))
        })
    }

    fn is_over(&self) -> bool {
        self.refusal.is_some() || self.exchange.stopping()
    }

    fn goes_on(&mut self) -> Result<bool, Fault> {
        self.refusal = self.exchange.early_refusal()?;
        Ok(!self.is_over())
    }
}
