//! What listens to a relay: it hears both sides, may answer a client in the server's place, and has a clock of its own.

use std::net::SocketAddr;

/// What becomes of bytes that a client said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// They go to the server.
    On,
    /// They wait for more: there are too few of them to say.
    Wait,
    /// The first `taken` of them are answered here, and the server never hears them.
    Answer {
        /// At least one.
        taken: usize,
        /// What the client hears.
        with: &'static [u8],
    },
    /// The connection is cut.
    Cut,
}

/// See the module. Connections are named by the numbers that [`Tap::opened`] tells; instants are of CLOCK_MONOTONIC, in nanoseconds.
pub trait Tap {
    /// A client connected, from this address.
    fn opened(&mut self, connection: u64, now_ns: u64, from: Option<SocketAddr>);

    /// The client said `bytes`, behind those that it was told of before and that did not wait.
    fn client(&mut self, connection: u64, now_ns: u64, bytes: &[u8]) -> Passage;

    /// The server said `bytes`.
    fn server(&mut self, connection: u64, now_ns: u64, bytes: &[u8]);

    /// Clients wait because the machine lacks something for another connection, as descriptors; they are let in when it is there.
    fn short(&mut self, _now_ns: u64, _why: &std::io::Error) {}

    /// The connection is over.
    fn closed(&mut self, connection: u64, now_ns: u64);

    /// When [`Tap::wake`] is to be called; none for never.
    fn due_ns(&self) -> Option<u64>;

    /// It is due. The relay ends if this is false.
    fn wake(&mut self, now_ns: u64) -> bool;
}

/// Nobody listens.
impl Tap for () {
    fn opened(&mut self, _: u64, _: u64, _: Option<SocketAddr>) {}

    fn client(&mut self, _: u64, _: u64, _: &[u8]) -> Passage {
        Passage::On
    }

    fn server(&mut self, _: u64, _: u64, _: &[u8]) {}

    fn closed(&mut self, _: u64, _: u64) {}

    fn due_ns(&self) -> Option<u64> {
        None
    }

    fn wake(&mut self, _: u64) -> bool {
        true
    }
}
