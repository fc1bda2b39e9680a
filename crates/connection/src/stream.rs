//! The three ways to a server: a Unix socket, TCP, and TLS on it.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;
use rustls::{ClientConnection, StreamOwned};

use crate::deadline::{Deadline, Timed};

/// Of rows on their way: a few messages of COPY.
const SEND_BYTES: usize = 512 << 10;

/// A connected socket.
pub enum Stream {
    /// On this machine.
    Unix(UnixStream),
    /// In clear.
    Tcp(TcpStream),
    /// Encrypted.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Whether TLS may hold decrypted bytes that epoll cannot see.
    pub fn has_buffered_plaintext(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// The certificate that the server showed; none without TLS.
    pub(crate) fn peer_certificate(&self) -> Option<&[u8]> {
        let Self::Tls(stream) = self else { return None };
        stream.conn.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// The version of TLS: `TLSv1_3`; none in clear.
    pub(crate) fn tls_version(&self) -> Option<String> {
        let Self::Tls(stream) = self else { return None };
        stream.conn.protocol_version().map(|version| format!("{version:?}"))
    }

    /// Sends what TLS still buffers. True when the kernel has everything.
    pub fn drained(&mut self) -> io::Result<bool> {
        let Self::Tls(stream) = self else { return Ok(true) };
        drain(&mut stream.conn, &mut stream.sock)
    }

    /// Whether there is a network between, which can fail without notice.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Unix(_))
    }

    /// Enlarges the send buffer of a Unix socket, so that the server has something to read while the writer waits for a
    /// core. TCP sizes its buffers itself.
    pub fn widen(&self) {
        if let Self::Unix(socket) = self {
            // Limited by net.core.wmem_max; a smaller buffer works too.
            let _ = set_socket_send_buffer_size(socket, SEND_BYTES);
        }
    }

    /// The same stream, whose reads and writes end at a deadline; its socket must block.
    pub(crate) fn timed(&mut self, deadline: Deadline) -> TimedStream<'_> {
        TimedStream { stream: self, deadline }
    }

    /// From here on reads and writes return at once.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_nonblocking(true),
            Self::Tcp(socket) => socket.set_nonblocking(true),
            Self::Tls(stream) => stream.sock.set_nonblocking(true),
        }
    }

    /// Longest wait of a read or write; none is no limit.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_read_timeout(timeout).and(socket.set_write_timeout(timeout)),
            Self::Tcp(socket) => socket.set_read_timeout(timeout).and(socket.set_write_timeout(timeout)),
            Self::Tls(stream) => stream.sock.set_read_timeout(timeout).and(stream.sock.set_write_timeout(timeout)),
        }
    }
}

fn drain(connection: &mut ClientConnection, socket: &mut impl Write) -> io::Result<bool> {
    while connection.wants_write() {
        match connection.write_tls(socket) {
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A stream during a log-in.
pub(crate) struct TimedStream<'a> {
    stream: &'a mut Stream,
    deadline: Deadline,
}

impl Read for TimedStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline;
        match self.stream {
            Stream::Unix(socket) => Timed { socket, deadline }.read(into),
            Stream::Tcp(socket) => Timed { socket, deadline }.read(into),
            Stream::Tls(stream) => {
                let mut socket = Timed { socket: &stream.sock, deadline };
                rustls::Stream::new(&mut stream.conn, &mut socket).read(into)
            }
        }
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let deadline = self.deadline;
        match self.stream {
            Stream::Unix(socket) => Timed { socket, deadline }.write(from),
            Stream::Tcp(socket) => Timed { socket, deadline }.write(from),
            Stream::Tls(stream) => {
                let mut socket = Timed { socket: &stream.sock, deadline };
                rustls::Stream::new(&mut stream.conn, &mut socket).write(from)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Stream::Tls(stream) = self.stream else { return Ok(()) };
        let mut socket = Timed { socket: &stream.sock, deadline: self.deadline };
        rustls::Stream::new(&mut stream.conn, &mut socket).flush()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(into),
            Self::Tcp(socket) => socket.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write(from),
            Self::Tcp(socket) => socket.write(from),
            Self::Tls(stream) => stream.write(from),
        }
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write_vectored(from),
            Self::Tcp(socket) => socket.write_vectored(from),
            Self::Tls(stream) => stream.write_vectored(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use rustls::crypto::ring;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};

    use super::*;

    /// Fails as it is told, and then takes everything.
    struct Failing(VecDeque<io::ErrorKind>);

    impl Write for Failing {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.0.pop_front().map_or(Ok(from.len()), |kind| Err(kind.into()))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// It wants to send its first message.
    fn beginning() -> ClientConnection {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
    }

    #[test]
    fn a_signal_during_a_write_of_tls_loses_no_session() {
        let mut connection = beginning();
        assert!(connection.wants_write());
        let mut socket = Failing([io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock].into());
        assert!(!drain(&mut connection, &mut socket).unwrap());
        let mut socket = Failing([io::ErrorKind::Interrupted].into());
        assert!(drain(&mut connection, &mut socket).unwrap());
        let mut socket = Failing([io::ErrorKind::BrokenPipe].into());
        assert!(drain(&mut beginning(), &mut socket).is_err());
    }
}
