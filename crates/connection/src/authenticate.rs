//! The server asks who connects. It gets one answer, and then must consent: a sequence that it cannot leave early.
//!
//! What the connection requires (`require_auth`, `channel_binding`) is checked before a password, a hash or a proof is sent.
//! The rules are libpq's (`check_expected_areq`, `pg_SASL_init`), with two more: SCRAM counts only once the server has proved that
//! it knows the password too, and a server that had its answer may not ask again.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use serde_json::{Value, json};

use crate::certificate::Certificate;
use crate::fault::Fault;
use crate::login_error::LoginError;
use crate::server::{Authentication, ChannelBinding, Server};
use crate::stream::Stream;
use crate::talk::{Talk, malformed};
use crate::wire;

/// A server that asks for more rounds of hashing is not answered: it would cost every client seconds of CPU before either end has
/// shown anything. PostgreSQL's default is 4,096; this is what the SCRAM code of `postgres-protocol`, and pgJDBC, accept.
const ITERATIONS_MAX: u64 = 100_000;

/// A message of authentication.
#[derive(Debug, PartialEq, Eq)]
enum Request<'a> {
    Ok,
    Password,
    Md5([u8; 4]),
    /// With the mechanisms that the server offers.
    Sasl(Vec<&'a [u8]>),
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    Other(u32),
}

impl<'a> Request<'a> {
    /// From the body of the message; none if it is not as the protocol has it.
    fn parse(body: &'a [u8]) -> Option<Self> {
        let (kind, rest) = body.split_first_chunk::<4>()?;
        Some(match (u32::from_be_bytes(*kind), rest) {
            (0, []) => Self::Ok,
            (3, []) => Self::Password,
            (0 | 3, _) => return None,
            (5, salt) => Self::Md5(salt.try_into().ok()?),
            (10, list) => Self::Sasl(mechanisms(list)?),
            (11, message) => Self::SaslContinue(message),
            (12, message) => Self::SaslFinal(message),
            (other, _) => Self::Other(other),
        })
    }
}

/// Names of mechanisms, each ended by a zero byte, and an empty one at the end.
fn mechanisms(list: &[u8]) -> Option<Vec<&[u8]>> {
    let names = list.strip_suffix(&[0])?;
    if names.is_empty() {
        return Some(Vec::new());
    }
    let names: Vec<_> = names.strip_suffix(&[0])?.split(|&byte| byte == 0).collect();
    names.iter().all(|name| !name.is_empty()).then_some(names)
}

/// How many rounds of hashing the server's first message of SCRAM asks for.
fn iterations(message: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(message).ok()?;
    let (_, count) = text.rsplit_once(",i=")?;
    count.parse().ok().filter(|&count| count > 0)
}

/// Answers the server's request, and waits for its consent.
pub(crate) fn authenticate(talk: &mut Talk, to: &Server) -> Result<(), LoginError> {
    let mut out = Vec::new();
    let body = talk.receive_request()?;
    match parsed(&body)? {
        Request::Ok => return Ok(permit(to, Authentication::None)?),
        Request::Password => {
            permit(to, Authentication::Password)?;
            wire::password(&mut out, secret(to)?);
            talk.send(&out)?;
        }
        Request::Md5(salt) => {
            permit(to, Authentication::Md5)?;
            wire::password(&mut out, md5_hash(to.user.as_bytes(), secret(to)?, salt).as_bytes());
            talk.send(&out)?;
        }
        Request::Sasl(offered) => scram(talk, to, &offered)?,
        Request::Other(kind) if kind != 8 => return Err(unsupported(kind)),
        _ => return Err(out_of_order()),
    }
    match parsed(&talk.receive_request()?)? {
        Request::Ok => Ok(()),
        _ => Err(out_of_order()),
    }
}

/// The whole of SCRAM: when it returns, both ends have proved that they know the password.
fn scram(talk: &mut Talk, to: &Server, offered: &[&[u8]]) -> Result<(), LoginError> {
    permit(to, Authentication::ScramSha256)?;
    let (mechanism, binding) = mechanism(talk.stream(), to, offered)?;
    let mut scram = ScramSha256::new(secret(to)?, binding);
    let mut out = Vec::new();
    wire::sasl_begin(&mut out, mechanism, scram.message());
    talk.send(&out)?;

    let body = talk.receive_request()?;
    let Request::SaslContinue(first) = parsed(&body)? else { return Err(unfinished(&body)) };
    match iterations(first) {
        None => return Err(not_scram()),
        Some(count) if count > ITERATIONS_MAX => return Err(too_many(count)),
        Some(_) => scram.update(first).map_err(|_| not_scram())?,
    }
    out.clear();
    wire::sasl(&mut out, scram.message());
    talk.send(&out)?;

    let body = talk.receive_request()?;
    let Request::SaslFinal(last) = parsed(&body)? else { return Err(unfinished(&body)) };
    scram.finish(last).map_err(|_| {
        refused(
            "connection.auth.server_signature",
            "the server could not prove who it is (SCRAM)",
            "check which server listens at that address",
        )
    })
}

fn parsed(body: &[u8]) -> Result<Request<'_>, LoginError> {
    Request::parse(body).ok_or_else(|| malformed(b'R'))
}

/// Whether this way of authentication is enough for what the connection requires.
fn permit(to: &Server, way: Authentication) -> Result<(), Fault> {
    if !to.accepts(way) {
        let asks = match way {
            Authentication::None => "does not ask who connects",
            Authentication::Password => "asks for the password in clear",
            Authentication::Md5 => "asks for the password's MD5 hash",
            Authentication::ScramSha256 => "asks for SCRAM",
        };
        let fault = Fault::new(
            format!("the server {asks}, which require_auth excludes"),
            "change require_auth, or the server's pg_hba.conf",
        );
        return Err(fault.coded("connection.auth.method", json!({"method": way.name()})));
    }
    match to.channel_binding {
        ChannelBinding::Require if way != Authentication::ScramSha256 => Err(unbound()),
        _ => Ok(()),
    }
}

/// The mechanism of SASL among those that the server offers.
fn mechanism(
    stream: &Stream,
    to: &Server,
    offered: &[&[u8]],
) -> Result<(&'static str, sasl::ChannelBinding), LoginError> {
    let offers = |mechanism: &str| offered.contains(&mechanism.as_bytes());
    let certificate = stream.peer_certificate();
    match certificate {
        // A server offers this over TLS alone: somebody between has removed the TLS.
        None if offers(SCRAM_SHA_256_PLUS) => Err(refused(
            "connection.auth.stripped",
            "the server offers SCRAM-SHA-256-PLUS on a connection without TLS: somebody between may have removed it",
            "use sslmode=verify-full, and look what is between",
        )),
        Some(certificate) if to.channel_binding != ChannelBinding::Disable && offers(SCRAM_SHA_256_PLUS) => {
            let hash = Certificate::parse(certificate).ok().and_then(|certificate| certificate.end_point());
            let hash = hash.ok_or_else(|| {
                refused(
                    "connection.auth.certificate",
                    "the signature of the server's certificate has no hash function, which channel binding needs",
                    "use channel_binding=disable, or a certificate that is signed by RSA or ECDSA",
                )
            })?;
            Ok((SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(hash)))
        }
        _ if to.channel_binding == ChannelBinding::Require => Err(unbound().into()),
        _ if !offers(SCRAM_SHA_256) => Err(LoginError::Refused(
            Fault::new("the server offers no mechanism of SASL that pgdyno knows", REMEDY)
                .coded("connection.auth.mechanism", json!({"offered": names(offered)})),
        )),
        Some(_) if to.channel_binding == ChannelBinding::Prefer => {
            Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested()))
        }
        _ => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported())),
    }
}

fn names(offered: &[&[u8]]) -> Vec<String> {
    offered.iter().map(|name| name.escape_ascii().to_string()).collect()
}

fn secret(to: &Server) -> Result<&[u8], Fault> {
    to.password().ok_or_else(|| {
        Fault::new(
            format!("the server asks for a password of {}, and there is none", to.user),
            "set PGPASSWORD, or put it into the password file (~/.pgpass, readable by you alone)",
        )
        .coded("connection.auth.password", json!({"user": to.user}))
    })
}

const REMEDY: &str = "let pg_hba.conf say scram-sha-256, md5, password or trust for this user";

fn refused(code: &'static str, message: impl Into<String>, remedy: &str) -> LoginError {
    LoginError::Refused(Fault::new(message, remedy).coded(code, Value::Null))
}

fn unbound() -> Fault {
    Fault::new(
        "channel binding is required, and the server logs in without it",
        "use channel_binding=prefer, or scram-sha-256 over TLS in the server's pg_hba.conf",
    )
    .coded("connection.auth.channel_binding", Value::Null)
}

fn unsupported(request: u32) -> LoginError {
    let message = "the server asks for a way of authentication that pgdyno does not know";
    LoginError::Refused(Fault::new(message, REMEDY).coded("connection.auth.unsupported", json!({"request": request})))
}

/// In the middle of SCRAM came something else than its next message.
fn unfinished(body: &[u8]) -> LoginError {
    if Request::parse(body) != Some(Request::Ok) {
        return out_of_order();
    }
    refused(
        "connection.auth.unfinished",
        "the server ended the log-in before it proved that it knows the password (SCRAM)",
        "check which server listens at that address",
    )
}

fn out_of_order() -> LoginError {
    refused(
        "connection.auth.order",
        "the server's requests for authentication are not in PostgreSQL's order",
        "check which server listens at that address",
    )
}

fn not_scram() -> LoginError {
    refused(
        "connection.auth.scram",
        "the server's message of SCRAM cannot be read",
        "check which server listens at that address",
    )
}

fn too_many(count: u64) -> LoginError {
    let fault = Fault::new(
        format!("the server asks for {count} rounds of hashing (SCRAM), and pgdyno does {ITERATIONS_MAX} at most"),
        "set the password again with a smaller scram_iterations",
    );
    let data = json!({"iterations": count, "iterations_max": ITERATIONS_MAX});
    LoginError::Refused(fault.coded("connection.auth.iterations", data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_as_the_protocol_has_it() {
        assert_eq!(Request::parse(b"\0\0\0\0"), Some(Request::Ok));
        assert_eq!(Request::parse(b"\0\0\0\x05salt"), Some(Request::Md5(*b"salt")));
        assert_eq!(Request::parse(b"\0\0\0\x0aA\0B\0\0"), Some(Request::Sasl(vec![b"A", b"B"])));
        assert_eq!(Request::parse(b"\0\0\0\x0a\0"), Some(Request::Sasl(vec![])));
        assert_eq!(Request::parse(b"\0\0\0\x07"), Some(Request::Other(7)));
    }

    #[test]
    fn a_request_that_is_torn_or_too_long_is_none() {
        for body in [
            &b"\0\0\0"[..],
            b"\0\0\0\0x",
            b"\0\0\0\x03x",
            b"\0\0\0\x05sal",
            b"\0\0\0\x05salty",
            b"\0\0\0\x0aA\0B\0",
            b"\0\0\0\x0aA",
            b"\0\0\0\x0a",
            b"\0\0\0\x0aA\0\0B\0\0",
            b"\0\0\0\x0a\0\0",
        ] {
            assert_eq!(Request::parse(body), None, "{body:?}");
        }
    }

    #[test]
    fn rounds_of_hashing_are_a_positive_number() {
        assert_eq!(iterations(b"r=a,s=b,i=4096"), Some(4096));
        for message in [&b"r=a,s=b,i=0"[..], b"r=a,s=b,i=-1", b"r=a,s=b", b"r=a,s=b,i=1,m=x", b"\xff,i=1"] {
            assert_eq!(iterations(message), None, "{message:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_server_sends_is_read_without_a_panic(
            body in prop::collection::vec(any::<u8>(), 0..2_000),
            kind in 0_u32..16,
            text in "[rsivem=,0-9a-zA-Z+/\\x00]{0,200}",
        ) {
            let _ = Request::parse(&body);
            let _ = Request::parse(&[&kind.to_be_bytes()[..], &body].concat());
            let _ = Request::parse(&[&kind.to_be_bytes()[..], text.as_bytes()].concat());
            for message in [&body[..], text.as_bytes()] {
                // A count of rounds is drawn too, so the expensive ones are what the limit is for.
                if iterations(message).is_none_or(|count| count < 100) {
                    let mut scram = ScramSha256::new(b"secret", sasl::ChannelBinding::unsupported());
                    if scram.update(message).is_ok() {
                        prop_assert!(scram.finish(message).is_err());
                    }
                }
            }
        }

        #[test]
        fn the_mechanisms_of_a_list_are_read_again(names in prop::collection::vec("[A-Z0-9-]{1,20}", 0..8)) {
            let mut list: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
            list.push(0);
            let read = mechanisms(&list).unwrap();
            prop_assert_eq!(read, names.iter().map(String::as_bytes).collect::<Vec<_>>());
        }
    }
}
