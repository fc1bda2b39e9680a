//! Cancelling a statement by the protocol's own request, as libpq does: on a connection of its own, over TLS where the
//! session is, and without a session, so that a server whose connections are all taken obeys too.

use std::io::{Read, Write};

use crate::connect::open;
use crate::login_error::LoginError;
use crate::server::Server;
use crate::wire;

/// The length of a key in version 3.0 of the protocol.
const KEY_BYTES: usize = 4;

/// What a server wants to see before it cancels a session's statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelKey {
    process_id: i32,
    key: Vec<u8>,
}

impl CancelKey {
    /// From the body of `BackendKeyData`; none if it is not as version 3.0 of the protocol has it.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (id, key) = body.split_first_chunk::<4>()?;
        (key.len() == KEY_BYTES).then(|| Self { process_id: i32::from_be_bytes(*id), key: key.to_vec() })
    }

    /// Asks the server to cancel, and waits until it has taken note. A server that gave no key cannot be asked.
    pub fn cancel(&self, to: &Server) -> Result<(), LoginError> {
        if self.key.is_empty() {
            return Ok(());
        }
        let (mut stream, deadline) = open(to, to.cancel_limit())?;
        let mut stream = stream.timed(deadline);
        let mut request = Vec::new();
        wire::cancel_request(&mut request, self.process_id, &self.key);
        stream.write_all(&request)?;
        stream.flush()?;
        // The server sends nothing: it closes the connection when the signal is on its way.
        let _ = stream.read(&mut [0]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_has_the_length_that_the_protocol_gives_it() {
        assert_eq!(CancelKey::parse(b"\0\0\0\x07abcd"), Some(CancelKey { process_id: 7, key: b"abcd".to_vec() }));
        for body in [&b""[..], b"\0\0\0\x07", b"\0\0\0\x07abc", b"\0\0\0\x07abcde"] {
            assert_eq!(CancelKey::parse(body), None, "{body:?}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_a_request_to_cancel_is_left_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = json!({
            "host": "localhost", "address": "127.0.0.1", "port": listener.local_addr().unwrap().port(), "user": "u",
            "dbname": "d", "application_name": "a", "connect_timeout_s": 1,
            "keepalive": {"enabled": false, "idle_s": 0, "interval_s": 0, "count": 0, "user_timeout_ms": 0},
        });
        let server: Server = serde_json::from_value(server).unwrap();
        let key = CancelKey { process_id: 7, key: b"abcd".to_vec() };
        assert!(key.cancel(&server).is_ok());
        let (mut asked, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        asked.read_to_end(&mut request).unwrap();
        assert_eq!(request, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd");
    }
}
