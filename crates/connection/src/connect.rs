//! From nothing to a stream on which the server listens: TCP or a Unix socket, and TLS on it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use crate::fault::Fault;
use crate::server::Server;
use crate::stream::Stream;
use crate::{tls, wire};

/// Why there is no session.
pub enum LoginError {
    /// The server cannot be reached, or not yet: worth another try.
    Absent(String),
    /// The server refused, or what was asked cannot be done.
    Refused(Fault),
}

impl From<io::Error> for LoginError {
    fn from(error: io::Error) -> Self {
        Self::Absent(error.to_string())
    }
}

impl From<Fault> for LoginError {
    fn from(error: Fault) -> Self {
        Self::Refused(error)
    }
}

impl LoginError {
    /// As an error for the user.
    pub fn into_fault(self, to: &Server) -> Fault {
        match self {
            Self::Refused(error) => error,
            Self::Absent(why) => Fault::absent(
                format!("no connection to the server at {} port {}: {why}", to.host, to.port),
                "check that the server runs, and the host and port of the connection string (or PGHOST and PGPORT)",
            ),
        }
    }
}

/// Connects. Reads and writes have the connection's timeout.
pub(crate) fn open(to: &Server) -> Result<Stream, LoginError> {
    let stream = reach(to, to.connect_timeout())?;
    stream.set_timeout(to.connect_timeout())?;
    Ok(stream)
}

fn reach(to: &Server, timeout: Option<Duration>) -> Result<Stream, LoginError> {
    if to.is_local() {
        return unix(to).map(Stream::Unix);
    }
    let mut socket = tcp(to, timeout)?;
    // A statement is one small packet; it must not wait for the acknowledgement of the last.
    socket.set_nodelay(true)?;
    to.keepalive.apply(&socket)?;
    let Some(tls) = &to.tls else { return Ok(Stream::Tcp(socket)) };
    // Also the handshake has a deadline.
    socket.set_read_timeout(timeout)?;
    socket.set_write_timeout(timeout)?;
    if !tls.direct {
        ask_for_tls(&mut socket)?;
    }
    let stream = tls::wrap(socket, &to.host, tls)
        .map_err(|fault| if fault.absent { LoginError::Absent(fault.message) } else { LoginError::Refused(fault) })?;
    Ok(Stream::Tls(Box::new(stream)))
}

fn unix(to: &Server) -> Result<UnixStream, LoginError> {
    let name = format!("{}/.s.PGSQL.{}", to.host, to.port);
    let socket = match name.strip_prefix('@') {
        None => UnixStream::connect(name)?,
        Some(name) => UnixStream::connect_addr(&UnixAddress::from_abstract_name(name)?)?,
    };
    let peer = socket_peercred(&socket).map_err(io::Error::from)?;
    match to.peer_uid {
        Some(wanted) if peer.uid.as_raw() != wanted => Err(Fault::new(
            format!("the server's process is of the user {}, and requirepeer names {wanted}", peer.uid.as_raw()),
            "look who listens at this socket, or name that user in requirepeer",
        )
        .into()),
        _ => Ok(socket),
    }
}

/// Connects to where libpq did; where nothing answers there, to the addresses that the name has now.
fn tcp(to: &Server, timeout: Option<Duration>) -> Result<TcpStream, LoginError> {
    let known = to.address.map(|address| SocketAddr::new(address, to.port));
    let mut last = match known.map(|address| connect(&address, timeout)) {
        Some(Ok(socket)) => return Ok(socket),
        Some(Err(error)) => error,
        None => io::Error::new(io::ErrorKind::NotFound, "the name has no address"),
    };
    if known.is_none() || to.look_up {
        for address in (to.host.as_str(), to.port).to_socket_addrs()?.filter(|address| Some(*address) != known) {
            match connect(&address, timeout) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
    }
    Err(last.into())
}

fn connect(address: &SocketAddr, timeout: Option<Duration>) -> io::Result<TcpStream> {
    timeout.map_or_else(|| TcpStream::connect(address), |timeout| TcpStream::connect_timeout(address, timeout))
}

fn ask_for_tls(socket: &mut TcpStream) -> Result<(), LoginError> {
    let mut out = Vec::new();
    wire::ssl_request(&mut out);
    socket.write_all(&out)?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    if answer == [b'S'] {
        return Ok(());
    }
    Err(Fault::new("the server does not offer TLS", "set ssl = on in the server, or use sslmode=disable").into())
}
