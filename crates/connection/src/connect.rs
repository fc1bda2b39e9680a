//! From nothing to a stream on which the server listens: TCP or a Unix socket, and TLS on it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, recv, socket_with};
use serde_json::{Value, json};

use crate::deadline::{Deadline, Timed};
use crate::fault::Fault;
use crate::login_error::LoginError;
use crate::server::Server;
use crate::stream::Stream;
use crate::{tls, wire};

/// Connects. Reads and writes of the log-in end at the deadline, which began with the attempt that succeeded: the address that
/// libpq found has as long as each of those that the name has now.
pub(crate) fn open(to: &Server, limit: Duration) -> Result<(Stream, Deadline), LoginError> {
    if to.is_local() {
        let deadline = Deadline::after(limit);
        return Ok((Stream::Unix(unix(to, limit)?), deadline));
    }
    let (socket, deadline) = tcp(to, limit)?;
    // A statement is one small packet; it must not wait for the acknowledgement of the last.
    socket.set_nodelay(true)?;
    to.keepalive.apply(&socket)?;
    let Some(tls) = &to.tls else { return Ok((Stream::Tcp(socket), deadline)) };
    if !tls.direct {
        ask_for_tls(&socket, deadline)?;
    }
    let stream = tls::wrap(socket, &to.host, tls, deadline)?;
    Ok((Stream::Tls(Box::new(stream)), deadline))
}

fn unix(to: &Server, limit: Duration) -> Result<UnixStream, LoginError> {
    let name = format!("{}/.s.PGSQL.{}", to.host, to.port);
    let address = match name.strip_prefix('@') {
        None => SocketAddrUnix::new(name.as_str()),
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
    };
    let connected = || {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // A server that accepts nothing lets others wait once its queue is full.
        set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
        rustix::io::retry_on_intr(|| rustix::net::connect(&socket, address.as_ref().map_err(|error| *error)?))?;
        Ok(socket)
    };
    let socket = UnixStream::from(connected().map_err(|error: rustix::io::Errno| match error {
        rustix::io::Errno::AGAIN => LoginError::Overdue(limit),
        other => io::Error::from(other).into(),
    })?);
    let peer = socket_peercred(&socket).map_err(io::Error::from)?;
    match to.peer_uid {
        Some(wanted) if peer.uid.as_raw() != wanted => Err(Fault::new(
            format!("the server's process is of the user {}, and requirepeer names {wanted}", peer.uid.as_raw()),
            "look who listens at this socket, or name that user in requirepeer",
        )
        .coded("connection.peer", json!({"uid": peer.uid.as_raw(), "uid_required": wanted}))
        .into()),
        _ => Ok(socket),
    }
}

/// Connects to where libpq did; where nothing answers there, to the addresses that the name has now.
fn tcp(to: &Server, limit: Duration) -> Result<(TcpStream, Deadline), LoginError> {
    let known = to.address.map(|address| SocketAddr::new(address, to.port));
    let mut last = match known.map(|address| connect(&address, limit)) {
        Some(Ok(connected)) => return Ok(connected),
        Some(Err(error)) => error,
        None => io::Error::new(io::ErrorKind::NotFound, "the name has no address").into(),
    };
    if known.is_none() || to.look_up {
        for address in (to.host.as_str(), to.port).to_socket_addrs()?.filter(|address| Some(*address) != known) {
            match connect(&address, limit) {
                Ok(connected) => return Ok(connected),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

fn connect(address: &SocketAddr, limit: Duration) -> Result<(TcpStream, Deadline), LoginError> {
    let deadline = Deadline::after(limit);
    match TcpStream::connect_timeout(address, limit) {
        Ok(socket) => Ok((socket, deadline)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(LoginError::Overdue(limit)),
        Err(error) => Err(error.into()),
    }
}

fn ask_for_tls(socket: &TcpStream, deadline: Deadline) -> Result<(), LoginError> {
    let mut out = Vec::new();
    wire::ssl_request(&mut out);
    let mut timed = Timed { socket, deadline };
    timed.write_all(&out)?;
    let mut answer = [0];
    timed.read_exact(&mut answer)?;
    if answer != [b'S'] {
        return Err(Fault::new("the server does not offer TLS", "set ssl = on in the server, or use sslmode=disable")
            .coded("connection.tls.refused", Value::Null)
            .into());
    }
    // The server must wait for our first message of TLS now. What is behind its answer in clear is not the server's, or not
    // meant for this session; what comes later fails in the handshake.
    match recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, 1..)) => Err(Fault::new(
            "there are bytes in clear behind the server's answer to the request for TLS: somebody between may have put them there",
            "look what is between; sslmode=verify-full shows that it is the server",
        )
        .coded("connection.tls.plaintext", Value::Null)
        .into()),
        _ => Ok(()),
    }
}
