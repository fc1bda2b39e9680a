//! The event loop: takes connections, and carries what is said from one to the other when it is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use pgdyno_clock::{WakeLead, monotonic_ns, process_cpu_ns};
use pgdyno_host::{Fault, Result, raise_open_files, stdin_ended, timespec};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, getpeername};
use rustix::net::{getsockname, listen, socket_with, sockopt};

use crate::pair::{CLIENT, Pair, SERVER, of_key};
use crate::spec::{RelaySpec, To};
use crate::tally::{Summary, Tally};
use crate::tap::Tap;

/// Clients that may connect before one is taken: thousands do at the same moment.
const BACKLOG: i32 = 4096;
/// Bytes that are read at once: the messages of thousands of rows, and little enough that no pair waits long for its turn.
const READ_BYTES: usize = 64 << 10;
/// Ids in epoll that are not of pairs.
const STOP: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
const STDIN: u64 = u64::MAX - 2;
/// What a timer is for, beside the two flows of a pair: the server learns of the client, and clients are let in again.
const DIAL: usize = 2;
const LISTEN: usize = 3;
/// The machine is asked again after this for what it lacked, or when a connection has ended.
const SHORT_NS: u64 = 100_000_000;

/// A relay that clients can connect to once it is bound, and are served while it runs.
pub struct Relay {
    spec: RelaySpec,
    address: SocketAddr,
    listener: OwnedFd,
    /// False while there are no descriptors left for more clients.
    listening: bool,
    /// How often that was so.
    short: u64,
    /// A socket for the next client's connection to the server: no client is let in that could not be connected.
    spare: Option<OwnedFd>,
    epoll: OwnedFd,
    pairs: HashMap<u64, Pair>,
    /// Instant, pair, and what for.
    timers: BinaryHeap<Reverse<(u64, u64, usize)>>,
    buffer: Box<[u8]>,
    tallies: [Tally; 2],
    connections: u64,
    connections_max: usize,
    unreachable: u64,
    /// Timers are set so much earlier.
    wake_lead: WakeLead,
}

impl Relay {
    /// Opens the port. From here on clients are let in, and wait.
    pub fn bind(spec: &RelaySpec) -> Result<Self> {
        spec.check()?;
        raise_open_files();
        let taken = |error: Errno| {
            Fault::new(
                format!("cannot listen on {}: {}", spec.listen, io::Error::from(error)),
                "use another port; 0 chooses a free one",
            )
        };
        let listener = open(family_of(&spec.listen)).map_err(|error| kernel("a socket", error))?;
        sockopt::set_socket_reuseaddr(&listener, true).map_err(taken)?;
        bind(&listener, &spec.listen).map_err(taken)?;
        listen(&listener, BACKLOG).map_err(taken)?;
        let address = getsockname(&listener).and_then(SocketAddr::try_from).map_err(taken)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| kernel("epoll", error))?;
        Ok(Self {
            spec: spec.clone(),
            address,
            listener,
            listening: false,
            short: 0,
            spare: None,
            epoll,
            pairs: HashMap::new(),
            timers: BinaryHeap::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            tallies: [Tally::new(), Tally::new()],
            connections: 0,
            connections_max: 0,
            unreachable: 0,
            wake_lead: WakeLead::new(|ns| ns),
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Relays until `stop` is readable. Connections that are open then are cut.
    pub fn run(self, stop: OwnedFd) -> Result<Summary> {
        self.run_with(stop, &mut ())
    }

    /// The same, while `tap` listens, and as long as it wants to.
    pub fn run_with(mut self, stop: OwnedFd, tap: &mut impl Tap) -> Result<Summary> {
        // The kernel may else wake this thread 50 us late, to save power.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        self.watch_orders(&stop)?;
        self.resume_listening()?;
        let mut events = Vec::with_capacity(256);
        loop {
            self.run_due(tap)?;
            if tap.due_ns().is_some_and(|due| due <= monotonic_ns()) && !tap.wake(monotonic_ns()) {
                return Ok(self.summary());
            }
            events.clear();
            match self.wait(&mut events, tap.due_ns()) {
                Ok(()) | Err(Errno::INTR) => (),
                Err(error) => return Err(kernel("to wait for sockets", error)),
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(self.summary()),
                    STDIN if stdin_ended() => return Ok(self.summary()),
                    STDIN => (),
                    LISTENER => self.accept(tap)?,
                    key => self.serve(key, tap)?,
                }
            }
        }
    }

    fn watch_orders(&self, stop: &OwnedFd) -> Result<()> {
        epoll::add(&self.epoll, stop, EventData::new_u64(STOP), EventFlags::IN)
            .map_err(|error| kernel("to watch for the order to stop", error))?;
        if !self.spec.ends_with_stdin {
            return Ok(());
        }
        epoll::add(&self.epoll, io::stdin(), EventData::new_u64(STDIN), EventFlags::IN).map_err(|_| {
            Fault::new("the end of standard input cannot be watched", "connect it to a pipe or a terminal")
        })
    }

    /// Waits for news or the next timer, to the nanosecond: epoll's own time-out may be rounded up to milliseconds.
    ///
    /// It is woken a little early, since waking takes time, and is awake for the rest.
    fn wait(&mut self, events: &mut Vec<epoll::Event>, due: Option<u64>) -> rustix::io::Result<()> {
        let next = [self.timers.peek().map(|Reverse((at, ..))| *at), due].into_iter().flatten().min();
        let wake = next.map(|at| at.saturating_sub(self.wake_lead.ns()));
        let left = wake.map(|wake| wake.saturating_sub(monotonic_ns()));
        if left != Some(0) {
            let left = left.map(timespec);
            if poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], left.as_ref())? == 0 {
                self.wake_lead.woken(monotonic_ns().saturating_sub(wake.unwrap_or_default()));
                return Ok(());
            }
        }
        epoll::wait(&self.epoll, spare_capacity(events), Some(&timespec(0)))?;
        Ok(())
    }

    fn run_due(&mut self, tap: &mut impl Tap) -> Result<()> {
        while let Some(&Reverse((at, id, what))) = self.timers.peek() {
            let now = monotonic_ns();
            if at > now {
                return Ok(());
            }
            self.timers.pop();
            if what == LISTEN {
                self.resume_listening()?;
                continue;
            }
            let Some(pair) = self.pairs.get_mut(&id) else { continue };
            if what == DIAL {
                dial(pair, &self.spec.to, now, &mut self.unreachable);
            } else {
                pair.timed[what] = false;
                pair.arrive(what, now, &mut self.tallies[what]);
            }
            self.settle(id, tap)?;
        }
        Ok(())
    }

    fn serve(&mut self, key: u64, tap: &mut impl Tap) -> Result<()> {
        let (id, side) = of_key(key);
        // It may have ended with an event before this one.
        let Some(pair) = self.pairs.get_mut(&id) else { return Ok(()) };
        if !pair.ready((id, side), &mut self.buffer, tap) {
            self.unreachable += 1;
        }
        self.settle(id, tap)
    }

    /// After anything happened to a pair: the next timers, what is watched, or its end.
    fn settle(&mut self, id: u64, tap: &mut impl Tap) -> Result<()> {
        let Some(pair) = self.pairs.get_mut(&id) else { return Ok(()) };
        if pair.is_over() {
            self.pairs.remove(&id);
            tap.closed(id, monotonic_ns());
            return self.resume_listening();
        }
        for from in [CLIENT, SERVER] {
            if let (false, Some(at)) = (pair.timed[from], pair.next_arrival(from)) {
                pair.timed[from] = true;
                self.timers.push(Reverse((at, id, from)));
            }
        }
        if pair.watch(&self.epoll, id).is_err() {
            // The kernel has no memory for it: this connection is cut, and the others are not.
            self.pairs.remove(&id);
            tap.closed(id, monotonic_ns());
        }
        Ok(())
    }

    /// Accepts every waiting connection.
    fn accept(&mut self, tap: &mut impl Tap) -> Result<()> {
        loop {
            let accepted = self.socket_for_server().and_then(|server| {
                match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                    Ok(client) => Ok((client, server)),
                    Err(error) => {
                        self.spare = Some(server);
                        Err(error)
                    }
                }
            });
            match accepted {
                Ok((client, server)) => self.admit(client, server, tap)?,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => (),
                Err(error) => return self.wait_for_descriptors(error, tap),
            }
        }
    }

    /// The spare socket, or a new one.
    fn socket_for_server(&mut self) -> rustix::io::Result<OwnedFd> {
        let family = match &self.spec.to {
            To::Tcp(address) => family_of(address),
            To::Unix(_) => AddressFamily::UNIX,
        };
        self.spare.take().map_or_else(|| open(family), Ok)
    }

    /// Waiting connections are accepted when another has ended, or after a while: somebody else may give descriptors back.
    fn wait_for_descriptors(&mut self, error: Errno, tap: &mut impl Tap) -> Result<()> {
        let now = monotonic_ns();
        self.short += 1;
        self.listening = false;
        self.timers.push(Reverse((now + SHORT_NS, LISTENER, LISTEN)));
        tap.short(now, &error.into());
        epoll::delete(&self.epoll, &self.listener).map_err(|error| kernel("to watch a socket", error))
    }

    fn admit(&mut self, client: OwnedFd, server: OwnedFd, tap: &mut impl Tap) -> Result<()> {
        let now = monotonic_ns();
        // A statement is one small packet; it must not wait for the acknowledgement of the last.
        let _ = sockopt::set_tcp_nodelay(&client, true);
        let id = self.connections;
        self.connections += 1;
        tap.opened(id, now, getpeername(&client).ok().flatten().and_then(|from| SocketAddr::try_from(from).ok()));
        self.pairs.insert(id, Pair::new(client, server, now, &self.spec));
        self.connections_max = self.connections_max.max(self.pairs.len());
        self.timers.push(Reverse((now + self.spec.rtt_ns / 2, id, DIAL)));
        self.settle(id, tap)
    }

    fn resume_listening(&mut self) -> Result<()> {
        if self.listening {
            return Ok(());
        }
        self.listening = true;
        epoll::add(&self.epoll, &self.listener, EventData::new_u64(LISTENER), EventFlags::IN)
            .map_err(|error| kernel("to watch a socket", error))
    }

    fn summary(&self) -> Summary {
        Summary {
            rtt_ns: self.spec.rtt_ns,
            connections: self.connections,
            connections_max: self.connections_max,
            unreachable: self.unreachable,
            short: self.short,
            cpu_ns: process_cpu_ns(),
            to_server: self.tallies[CLIENT].direction(),
            to_client: self.tallies[SERVER].direction(),
        }
    }
}

/// Begins the connection to the server, which learns of its client half a round trip after it called.
fn dial(pair: &mut Pair, to: &To, now: u64, unreachable: &mut u64) {
    let Some(server) = pair.socket() else { return };
    let begun = match to {
        To::Tcp(address) => {
            let _ = sockopt::set_tcp_nodelay(&server, true);
            connected(connect(&server, address), server)
        }
        To::Unix(path) => connected(SocketAddrUnix::new(path.as_path()).and_then(|to| connect(&server, &to)), server),
    };
    match begun {
        Ok(server) => pair.dialled(server),
        Err(_) => {
            *unreachable += 1;
            pair.undialled(now);
        }
    }
}

/// The socket, unless its connection could not be begun.
fn connected(begun: rustix::io::Result<()>, server: OwnedFd) -> rustix::io::Result<OwnedFd> {
    match begun {
        // What a signal interrupts goes on by itself.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(server),
        Err(error) => Err(error),
    }
}

/// A socket that never waits.
fn open(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

fn family_of(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// The kernel did not give `what`.
pub(crate) fn kernel(what: &str, error: impl Into<io::Error>) -> Fault {
    Fault::new(
        format!("the kernel refused {what}: {}", error.into()),
        "raise the limit of open files (ulimit -n), or use fewer clients",
    )
}
