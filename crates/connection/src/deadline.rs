//! The instant by which a log-in must be complete. It does not move when a byte arrives, so a server that trickles gains nothing.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use rustix::fd::AsFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

/// The deadline has passed; after how long.
#[derive(Debug, thiserror::Error)]
#[error("it did not complete the log-in within {} s", .0.as_secs())]
pub(crate) struct Overdue(pub Duration);

impl Deadline {
    /// From now on.
    pub(crate) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    /// The error of what took too long.
    pub(crate) fn overdue(self) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, Overdue(self.limit))
    }

    fn left(self) -> io::Result<Duration> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.overdue()) } else { Ok(left) }
    }
}

impl Overdue {
    /// After how long, if that is what an error is about.
    pub(crate) fn limit(error: &io::Error) -> Option<Duration> {
        error.get_ref()?.downcast_ref::<Self>().map(|overdue| overdue.0)
    }
}

/// A blocking socket whose reads and writes end at the deadline. A signal interrupts neither.
pub(crate) struct Timed<'a, S> {
    pub socket: &'a S,
    pub deadline: Deadline,
}

impl<S: AsFd> Timed<'_, S> {
    fn retry<T>(&self, side: Timeout, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            set_socket_timeout(self.socket, side, Some(self.deadline.left()?))?;
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(self.deadline.overdue()),
                result => return result,
            }
        }
    }
}

impl<'a, S: AsFd> Read for Timed<'a, S>
where
    &'a S: Read,
{
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut socket = self.socket;
        self.retry(Timeout::Recv, || socket.read(into))
    }
}

impl<'a, S: AsFd> Write for Timed<'a, S>
where
    &'a S: Write,
{
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut socket = self.socket;
        self.retry(Timeout::Send, || socket.write(from))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_read_ends_at_the_deadline_however_often_bytes_arrive() {
        let (client, server) = UnixStream::pair().unwrap();
        let deadline = Deadline::after(Duration::from_millis(50));
        let mut timed = Timed { socket: &client, deadline };
        let ended = loop {
            (&server).write_all(b"x").unwrap();
            if let Err(error) = timed.read(&mut [0]) {
                break error;
            }
        };
        assert_eq!(Overdue::limit(&ended), Some(Duration::from_millis(50)));
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_write_to_a_peer_that_does_not_read_ends_at_the_deadline() {
        let (client, _server) = UnixStream::pair().unwrap();
        let mut timed = Timed { socket: &client, deadline: Deadline::after(Duration::from_millis(50)) };
        let ended = timed.write_all(&vec![0; 64 << 20]).unwrap_err();
        assert!(Overdue::limit(&ended).is_some(), "{ended}");
    }
}
