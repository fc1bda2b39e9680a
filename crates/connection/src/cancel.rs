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
