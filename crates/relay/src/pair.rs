//! A client's connection and the one to the server that belongs to it, with a flow in each direction.

use std::os::fd::OwnedFd;
use std::time::Duration;

use pgdyno_clock::monotonic_ns;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};

use crate::flow::{Ending, Flow};
use crate::spec::RelaySpec;
use crate::tally::Tally;
use crate::tap::{Passage, Tap};

/// Index of the client: of its side, and of the flow that carries what it says.
pub(crate) const CLIENT: usize = 0;
/// Index of the server.
pub(crate) const SERVER: usize = 1;

/// One of the two connections.
struct Side {
    /// None before it is made and after it broke.
    socket: Option<OwnedFd>,
    /// For what epoll watches it; for nothing if it is not in there.
    watched: EventFlags,
    /// The kernel takes no more bytes for it.
    blocked: bool,
}

impl Side {
    fn new(socket: Option<OwnedFd>) -> Self {
        Self { socket, watched: EventFlags::empty(), blocked: false }
    }
}

/// See the module.
pub(crate) struct Pair {
    sides: [Side; 2],
    flows: [Flow; 2],
    /// The connection to the server is being made.
    connecting: bool,
    /// Whether a timer is set for the next arrival of a flow.
    pub timed: [bool; 2],
    finished: bool,
    /// What the client said, and the tap has not let pass yet.
    held: Vec<u8>,
    /// A socket for the connection to the server, until that is begun.
    unused: Option<OwnedFd>,
}

impl Pair {
    /// A client that connected at `now`, with a socket for the connection to the server.
    pub(crate) fn new(client: OwnedFd, unused: OwnedFd, now: u64, spec: &RelaySpec) -> Self {
        let to_server_ns = spec.rtt_ns / 2;
        // With a real distance the client's call to connect returns after a round trip.
        let open_ns = now + spec.rtt_ns;
        Self {
            sides: [Side::new(Some(client)), Side::new(None)],
            flows: [
                Flow::new(to_server_ns, open_ns, spec.window_bytes),
                Flow::new(spec.rtt_ns - to_server_ns, now, spec.window_bytes),
            ],
            connecting: false,
            timed: [false; 2],
            finished: false,
            held: Vec::new(),
            unused: Some(unused),
        }
    }

    /// The socket for the connection to the server, once.
    pub(crate) fn socket(&mut self) -> Option<OwnedFd> {
        self.unused.take()
    }

    /// The connection to the server is under way.
    pub(crate) fn dialled(&mut self, server: OwnedFd) {
        self.sides[SERVER].socket = Some(server);
        self.connecting = true;
    }

    /// The connection to the server could not even be started.
    pub(crate) fn undialled(&mut self, now: u64) {
        self.broken(SERVER, now);
    }

    /// Whether nothing will happen here any more.
    pub(crate) fn is_over(&self) -> bool {
        self.finished || self.flows.iter().all(Flow::is_over)
    }

    /// When a flow's next bytes arrive, or its last word; this may be now, or have been.
    pub(crate) fn next_arrival(&self, from: usize) -> Option<u64> {
        self.flows[from].next_arrival()
    }

    /// What the flow of `from` had under way has arrived, as far as it is due: it goes to the other side.
    pub(crate) fn arrive(&mut self, from: usize, now: u64, tally: &mut Tally) {
        self.flows[from].arrive(now, tally);
        self.write(1 - from, now);
    }

    /// The kernel has news of a side of this connection. False when it is that the server does not take the connection.
    pub(crate) fn ready(&mut self, (id, side): (u64, usize), buffer: &mut [u8], tap: &mut impl Tap) -> bool {
        if side == SERVER && self.connecting {
            let Some(socket) = &self.sides[SERVER].socket else { return true };
            self.connecting = false;
            if !matches!(sockopt::socket_error(socket), Ok(Ok(()))) {
                self.broken(SERVER, monotonic_ns());
                return false;
            }
        }
        self.read((id, side), buffer, tap);
        self.write(side, monotonic_ns());
        true
    }

    /// Takes in what a side said, once: what is left after that makes another event, after the others had their turn.
    fn read(&mut self, (id, side): (u64, usize), buffer: &mut [u8], tap: &mut impl Tap) {
        let room = self.flows[side].room().min(buffer.len());
        let Some(socket) = self.sides[side].socket.as_ref().filter(|_| room > 0) else { return };
        let buffer = &mut buffer[..room];
        let got = loop {
            match rustix::io::read(socket, &mut *buffer) {
                Err(Errno::INTR) => (),
                other => break other,
            }
        };
        let now = monotonic_ns();
        match got {
            Ok(0) => self.flows[side].finish(now, Ending::Close),
            Ok(count) if side == CLIENT => self.hear(id, now, &buffer[..count], tap),
            Ok(count) => {
                tap.server(id, now, &buffer[..count]);
                self.flows[side].take_in(now, &buffer[..count]);
            }
            Err(Errno::AGAIN) => (),
            Err(_) => self.broken(side, now),
        }
    }

    /// Lets pass what the client said, as far as the tap does.
    fn hear(&mut self, id: u64, now: u64, bytes: &[u8], tap: &mut impl Tap) {
        let mut held = std::mem::take(&mut self.held);
        let mut rest = if held.is_empty() {
            bytes
        } else {
            held.extend_from_slice(bytes);
            held.as_slice()
        };
        while !rest.is_empty() {
            match tap.client(id, now, rest) {
                Passage::On => return self.flows[CLIENT].take_in(now, rest),
                Passage::Wait => {
                    self.held = rest.to_vec();
                    return;
                }
                Passage::Answer { taken, with } => {
                    if self.flows[SERVER].room() < with.len() {
                        return; // the server could not be reached, and the client hears that
                    }
                    self.flows[SERVER].take_in(now, with);
                    rest = &rest[taken..];
                }
                Passage::Cut => {
                    self.finished = true;
                    return;
                }
            }
        }
    }

    /// Hands to a side what has arrived for it, as far as it takes it, and then the other's last word.
    fn write(&mut self, to: usize, now: u64) {
        let Side { socket: Some(socket), blocked, .. } = &mut self.sides[to] else { return };
        if to == SERVER && self.connecting {
            return;
        }
        let flow = &mut self.flows[1 - to];
        *blocked = false;
        while !*blocked && !flow.front().is_empty() {
            match send(&*socket, flow.front(), SendFlags::NOSIGNAL) {
                Ok(count) => flow.consume(count),
                Err(Errno::AGAIN) => *blocked = true,
                Err(Errno::INTR) => (),
                Err(_) => return self.broken(to, now),
            }
        }
        match flow.last_word() {
            Some(Ending::Close) => {
                // It fails when the other side has gone already, which its own flow tells.
                let _ = shutdown(&*socket, Shutdown::Write);
                flow.abandon();
            }
            Some(Ending::Reset) => {
                let _ = sockopt::set_socket_linger(&*socket, Some(Duration::ZERO));
                self.finished = true;
            }
            None => (),
        }
    }

    /// A side broke: what it said before still arrives, then the break does; nothing goes to it any more.
    fn broken(&mut self, side: usize, now: u64) {
        self.sides[side] = Side::new(None);
        self.flows[1 - side].abandon();
        if self.connecting || self.sides[1 - side].socket.is_none() {
            self.finished = true;
        } else {
            self.flows[side].finish(now, Ending::Reset);
        }
    }

    /// Has epoll watch both sides for what is wanted of them now. A side of which nothing is wanted is taken out: of a
    /// connection that is closed the kernel would tell all the time.
    pub(crate) fn watch(&mut self, epoll: &OwnedFd, id: u64) -> Result<(), Errno> {
        for side in [CLIENT, SERVER] {
            let connecting = side == SERVER && self.connecting;
            let reads = !connecting && self.flows[side].room() > 0;
            let Side { socket: Some(socket), watched, blocked } = &mut self.sides[side] else { continue };
            let mut wanted = EventFlags::empty();
            wanted.set(EventFlags::IN, reads);
            wanted.set(EventFlags::OUT, connecting || *blocked);
            if wanted == *watched {
                continue;
            }
            if wanted.is_empty() {
                epoll::delete(epoll, &*socket)?;
            } else if watched.is_empty() {
                epoll::add(epoll, &*socket, key(id, side), wanted)?;
            } else {
                epoll::modify(epoll, &*socket, key(id, side), wanted)?;
            }
            *watched = wanted;
        }
        Ok(())
    }
}

/// What epoll says of an event of a side; the inverse of [`of_key`].
fn key(id: u64, side: usize) -> EventData {
    EventData::new_u64((id << 1) | side as u64)
}

/// The pair and the side that a key is of.
pub(crate) fn of_key(key: u64) -> (u64, usize) {
    (key >> 1, (key & 1) as usize)
}
