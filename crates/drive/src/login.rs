//! From nothing to a connection that is ready for queries. It blocks, with a deadline on each step unless none is wanted,
//! and so happens before a run, or on a thread of its own during one.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use crate::conninfo::{ConnInfo, SslMode};
use crate::error::DriveError;
use crate::frame::{Inbox, Said};
use crate::stream::Stream;
use crate::{tls, wire};

/// A session that waits for its first query.
pub(crate) struct Session {
    pub stream: Stream,
    pub inbox: Inbox,
    /// As the server writes it: `18.1`.
    pub server_version: String,
}

/// Why there is no session.
pub(crate) enum LoginError {
    /// The server is not there, or not yet: worth another try.
    Absent(String),
    /// The server said no, or what was asked cannot be done.
    Refused(DriveError),
}

impl From<io::Error> for LoginError {
    fn from(error: io::Error) -> Self {
        Self::Absent(error.to_string())
    }
}

impl From<DriveError> for LoginError {
    fn from(error: DriveError) -> Self {
        Self::Refused(error)
    }
}

impl LoginError {
    /// As the end of a run.
    pub(crate) fn into_error(self, to: &ConnInfo) -> DriveError {
        match self {
            Self::Refused(error) => error,
            Self::Absent(why) => DriveError::absent(
                format!("no connection to the server at {} port {}: {why}", to.host, to.port),
                "start the server, or say where it is with PGHOST and PGPORT",
            ),
        }
    }
}

/// Connects and logs in.
pub(crate) fn log_in(to: &ConnInfo) -> Result<Session, LoginError> {
    let timeout = to.connect_timeout;
    let stream = open(to, timeout)?;
    stream.set_timeout(timeout)?;
    let mut session = Session { stream, inbox: Inbox::new(), server_version: String::new() };
    let mut out = Vec::new();
    let mut settings = vec![
        ("user", to.user.as_str()),
        ("database", to.dbname.as_str()),
        ("application_name", to.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    settings.extend(to.options.as_deref().map(|options| ("options", options)));
    wire::startup(&mut out, &settings);
    send(&mut session.stream, &mut out)?;
    authenticate(&mut session, to)?;
    loop {
        let (tag, body) = receive(&mut session)?;
        match tag {
            b'S' => {
                let mut words = body.split(|&byte| byte == 0).map(String::from_utf8_lossy);
                if words.next().as_deref() == Some("server_version") {
                    session.server_version = words.next().unwrap_or_default().into_owned();
                }
            }
            b'Z' => break,
            _ => (),
        }
    }
    session.stream.set_nonblocking()?;
    Ok(session)
}

fn open(to: &ConnInfo, timeout: Option<Duration>) -> Result<Stream, LoginError> {
    if to.host.starts_with('/') {
        return Ok(Stream::Unix(UnixStream::connect(format!("{}/.s.PGSQL.{}", to.host, to.port))?));
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (to.host.as_str(), to.port).to_socket_addrs()? {
        match connect(&address, timeout) {
            Ok(mut socket) => {
                // A statement is one small packet; it must not wait for the acknowledgement of the last.
                socket.set_nodelay(true)?;
                to.patience.tell(&socket)?;
                if to.sslmode == SslMode::Disable {
                    return Ok(Stream::Tcp(socket));
                }
                ask_for_tls(&mut socket, timeout)?;
                return Ok(Stream::Tls(Box::new(tls::wrap(socket, to)?)));
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

fn connect(address: &SocketAddr, timeout: Option<Duration>) -> io::Result<TcpStream> {
    timeout.map_or_else(|| TcpStream::connect(address), |timeout| TcpStream::connect_timeout(address, timeout))
}

fn ask_for_tls(socket: &mut TcpStream, timeout: Option<Duration>) -> Result<(), LoginError> {
    socket.set_read_timeout(timeout)?;
    let mut out = Vec::new();
    wire::ssl_request(&mut out);
    socket.write_all(&out)?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    if answer == [b'S'] {
        return Ok(());
    }
    Err(DriveError::new("the server does not offer TLS", "switch ssl on in the server, or take sslmode=disable").into())
}

fn authenticate(session: &mut Session, to: &ConnInfo) -> Result<(), LoginError> {
    let mut scram = None;
    let mut out = Vec::new();
    loop {
        let (tag, body) = receive(session)?;
        let (b'R', Some((kind, rest))) = (tag, body.split_first_chunk::<4>()) else { continue };
        match (u32::from_be_bytes(*kind), &mut scram) {
            (0, _) => return Ok(()),
            (3, _) => wire::password(&mut out, secret(to)?),
            (5, _) => {
                let Some(salt) = rest.first_chunk::<4>() else { return Err(not_understood()) };
                wire::password(&mut out, md5_hash(to.user.as_bytes(), secret(to)?, *salt).as_bytes());
            }
            (10, _) if rest.split(|&byte| byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) => {
                let begun = ScramSha256::new(secret(to)?, ChannelBinding::unsupported());
                wire::sasl_begin(&mut out, SCRAM_SHA_256, begun.message());
                scram = Some(begun);
            }
            (11, Some(scram)) => {
                scram.update(rest)?;
                wire::sasl(&mut out, scram.message());
            }
            // The server proves that it knows the password too.
            (12, Some(scram)) => scram.finish(rest).map_err(|_| {
                DriveError::new("the server could not prove who it is (SCRAM)", "look who listens at that address")
            })?,
            _ => return Err(not_understood()),
        }
        send(&mut session.stream, &mut out)?;
    }
}

fn not_understood() -> LoginError {
    LoginError::Refused(DriveError::new(
        "the server asks for a way of authentication that the driver does not know",
        "let pg_hba.conf say scram-sha-256, md5, password or trust for this user",
    ))
}

fn secret(to: &ConnInfo) -> Result<&[u8], DriveError> {
    to.password.as_deref().map(str::as_bytes).ok_or_else(|| {
        DriveError::new(
            format!("the server wants a password for {}, and there is none", to.user),
            "set PGPASSWORD, or put it into the password file (~/.pgpass, readable by you alone)",
        )
    })
}

fn send(stream: &mut Stream, out: &mut Vec<u8>) -> io::Result<()> {
    stream.write_all(out)?;
    stream.flush()?;
    out.clear();
    Ok(())
}

/// The next message; an error of the server becomes ours.
fn receive(session: &mut Session) -> Result<(u8, Vec<u8>), LoginError> {
    loop {
        if let Some(frame) = session.inbox.next()? {
            if frame.tag == b'E' {
                return Err(refusal(&Said::of(frame.body)));
            }
            return Ok((frame.tag, frame.body.to_vec()));
        }
        if session.inbox.fill(&mut session.stream)? == 0 {
            return Err(LoginError::Absent("the server hung up".to_owned()));
        }
    }
}

/// A server that starts, stops or is full for the moment (class 57P) is as good as absent.
fn refusal(said: &Said) -> LoginError {
    if said.sqlstate.starts_with("57P") {
        return LoginError::Absent(said.message.clone());
    }
    LoginError::Refused(DriveError::of(said))
}
