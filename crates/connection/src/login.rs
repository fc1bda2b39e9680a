//! From nothing to a connection that is ready for queries. It blocks, with a deadline on each step unless none is wanted,
//! and so happens before a run, or on a thread of its own during one.

use std::io::{self, Write};

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};

use crate::cancel::CancelKey;
use crate::certificate::Certificate;
use crate::connect::{LoginError, open};
use crate::fault::Fault;
use crate::frame::Inbox;
use crate::server::{Authentication, ChannelBinding, Server};
use crate::server_error::ServerError;
use crate::stream::Stream;
use crate::wire;

/// A session that waits for its first query.
pub struct Session {
    /// The socket; reads and writes return at once.
    pub stream: Stream,
    /// What was read and not yet looked at.
    pub inbox: Inbox,
    /// As the server writes it: `18.1`.
    pub server_version: String,
    /// With which its statements can be cancelled.
    pub cancel_key: CancelKey,
}

impl Session {
    /// Ends the session; whether the server hears it does not matter.
    pub(crate) fn hang_up(&mut self) {
        let mut out = Vec::new();
        wire::terminate(&mut out);
        let _ = send(&mut self.stream, &mut out);
    }
}

/// Connects and logs in.
pub fn log_in(to: &Server) -> Result<Session, LoginError> {
    let mut session = Session {
        stream: open(to)?,
        inbox: Inbox::default(),
        server_version: String::new(),
        cancel_key: CancelKey::default(),
    };
    let mut out = Vec::new();
    let mut settings = vec![
        ("user", to.user.as_str()),
        ("database", to.dbname.as_str()),
        ("application_name", to.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    settings.extend(to.startup.iter().map(|(name, value)| (name.as_str(), value.as_str())));
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
            b'K' => session.cancel_key = CancelKey::parse(&body),
            b'Z' => break,
            _ => (),
        }
    }
    session.stream.set_nonblocking()?;
    Ok(session)
}

fn authenticate(session: &mut Session, to: &Server) -> Result<(), LoginError> {
    let mut scram = None;
    let mut asked = None;
    let mut out = Vec::new();
    loop {
        let (tag, body) = receive(session)?;
        let (b'R', Some((kind, rest))) = (tag, body.split_first_chunk::<4>()) else { continue };
        match (u32::from_be_bytes(*kind), &mut scram) {
            (0, _) => return done(to, asked),
            (3, _) => {
                asked = Some(allowed(to, Authentication::Password)?);
                wire::password(&mut out, secret(to)?);
            }
            (5, _) => {
                let Some(salt) = rest.first_chunk::<4>() else { return Err(not_understood()) };
                asked = Some(allowed(to, Authentication::Md5)?);
                wire::password(&mut out, md5_hash(to.user.as_bytes(), secret(to)?, *salt).as_bytes());
            }
            (10, _) => {
                asked = Some(allowed(to, Authentication::ScramSha256)?);
                let (mechanism, binding) = mechanism(&session.stream, to, rest)?;
                let begun = ScramSha256::new(secret(to)?, binding);
                wire::sasl_begin(&mut out, mechanism, begun.message());
                scram = Some(begun);
            }
            (11, Some(scram)) => {
                scram.update(rest)?;
                wire::sasl(&mut out, scram.message());
            }
            // The server proves that it knows the password too.
            (12, Some(scram)) => scram.finish(rest).map_err(|_| {
                Fault::new("the server could not prove who it is (SCRAM)", "check which server listens at that address")
            })?,
            _ => return Err(not_understood()),
        }
        send(&mut session.stream, &mut out)?;
    }
}

/// The server is content. Whether we are: it may have asked for less than is required.
fn done(to: &Server, asked: Option<Authentication>) -> Result<(), LoginError> {
    allowed(to, asked.unwrap_or(Authentication::None))?;
    if to.channel_binding == ChannelBinding::Require && asked != Some(Authentication::ScramSha256) {
        return Err(unbound().into());
    }
    Ok(())
}

fn allowed(to: &Server, way: Authentication) -> Result<Authentication, Fault> {
    if to.accepts(way) {
        return Ok(way);
    }
    let asks = match way {
        Authentication::None => "does not ask who connects",
        Authentication::Password => "asks for the password in clear",
        Authentication::Md5 => "asks for the password's MD5 hash",
        Authentication::ScramSha256 => "asks for SCRAM",
    };
    Err(Fault::new(
        format!("the server {asks}, which require_auth excludes"),
        "change require_auth, or the server's pg_hba.conf",
    ))
}

/// The mechanism of SASL among those that the server offers, as libpq chooses it (`pg_SASL_init`).
fn mechanism(stream: &Stream, to: &Server, offered: &[u8]) -> Result<(&'static str, sasl::ChannelBinding), LoginError> {
    let offers = |mechanism: &str| offered.split(|&byte| byte == 0).any(|name| name == mechanism.as_bytes());
    let certificate = stream.peer_certificate();
    match certificate {
        Some(certificate) if to.channel_binding != ChannelBinding::Disable && offers(SCRAM_SHA_256_PLUS) => {
            let hash = Certificate::parse(certificate).ok().and_then(|certificate| certificate.end_point());
            let hash = hash.ok_or_else(|| {
                Fault::new(
                    "the signature of the server's certificate has no hash function, which channel binding needs",
                    "use channel_binding=disable, or a certificate that is signed by RSA or ECDSA",
                )
            })?;
            Ok((SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(hash)))
        }
        _ if to.channel_binding == ChannelBinding::Require => Err(unbound().into()),
        _ if !offers(SCRAM_SHA_256) => Err(not_understood()),
        Some(_) if to.channel_binding == ChannelBinding::Prefer => {
            Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested()))
        }
        _ => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported())),
    }
}

fn unbound() -> Fault {
    Fault::new(
        "channel binding is required, and the server logs in without it",
        "use channel_binding=prefer, or scram-sha-256 over TLS in the server's pg_hba.conf",
    )
}

fn not_understood() -> LoginError {
    LoginError::Refused(Fault::new(
        "the server asks for a way of authentication that pgdyno does not know",
        "let pg_hba.conf say scram-sha-256, md5, password or trust for this user",
    ))
}

fn secret(to: &Server) -> Result<&[u8], Fault> {
    to.password().ok_or_else(|| {
        Fault::new(
            format!("the server asks for a password of {}, and there is none", to.user),
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
        if let Some(frame) = session.inbox.next_frame()? {
            if frame.tag == b'E' {
                return Err(refusal(&ServerError::parse(frame.body)));
            }
            return Ok((frame.tag, frame.body.to_vec()));
        }
        if session.inbox.fill(&mut session.stream)? == 0 {
            return Err(LoginError::Absent("the server closed the connection".to_owned()));
        }
    }
}

/// A server that is starting up or shutting down counts as absent.
fn refusal(error: &ServerError) -> LoginError {
    if error.ends_session() {
        return LoginError::Absent(error.message.clone());
    }
    LoginError::Refused(Fault::of(error))
}
