//! What goes in comes out, in order, late enough, and ends as it ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use pgdyno_relay::{Passage, Relay, RelaySpec, Summary, Tap};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::sockopt::set_socket_linger;
use serde_json::json;

const RTT: Duration = Duration::from_millis(4);
/// Longer than anything here takes; a test that would hang fails instead.
const PATIENCE: Duration = Duration::from_secs(30);

/// A relay that runs in a thread of its own.
struct Running {
    address: SocketAddr,
    stop: OwnedFd,
    thread: JoinHandle<Summary>,
}

impl Running {
    fn start(to: SocketAddr, rtt: Duration, window_bytes: usize) -> Self {
        let document = json!({"to": to, "rtt_ns": rtt.as_nanos() as u64, "window_bytes": window_bytes});
        let spec: RelaySpec = serde_json::from_value(document).unwrap();
        let relay = Relay::bind(&spec).unwrap();
        let address = relay.address();
        let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let order = stop.try_clone().unwrap();
        Self { address, stop, thread: spawn(move || relay.run(order).unwrap()) }
    }

    fn client(&self) -> TcpStream {
        patient(TcpStream::connect(self.address).unwrap())
    }

    fn end(self) -> Summary {
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes()).unwrap();
        self.thread.join().unwrap()
    }
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A server that does the same to `count` connections, each in a thread of its own.
fn server(count: usize, each: fn(TcpStream)) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = spawn(move || {
        let taken: Vec<_> = (0..count)
            .map(|_| {
                let stream = patient(listener.accept().unwrap().0);
                spawn(move || each(stream))
            })
            .collect();
        taken.into_iter().for_each(|thread| thread.join().unwrap());
    });
    (address, thread)
}

fn echo(mut stream: TcpStream) {
    let mut buffer = vec![0; 10_000];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return stream.shutdown(Shutdown::Write).unwrap(),
            count => stream.write_all(&buffer[..count]).unwrap(),
        }
    }
}

/// Bytes that repeat nowhere near, from a number: a linear congruential generator's high bits.
fn noise(mut state: u64, count: usize) -> Vec<u8> {
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn what_goes_in_comes_out_in_order_and_half_a_round_trip_later() {
    let (address, served) = server(1, echo);
    let relay = Running::start(address, RTT, 4 << 20);
    let client = relay.client();
    let said = noise(1, 5_000_000);
    let (mut to, mut from) = (client.try_clone().unwrap(), client);
    let expected = said.clone();
    let writer = spawn(move || {
        let (mut rest, mut length) = (said.as_slice(), 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(length.min(rest.len()));
            to.write_all(now).unwrap();
            (rest, length) = (later, length * 7 % 100_003 + 1);
        }
        to.shutdown(Shutdown::Write).unwrap();
    });
    let mut heard = Vec::new();
    from.read_to_end(&mut heard).unwrap();
    writer.join().unwrap();
    served.join().unwrap();
    assert!(heard == expected);
    let summary = relay.end();
    for direction in [&summary.to_server, &summary.to_client] {
        assert_eq!(direction.bytes, expected.len() as u64);
        assert!(u128::from(direction.delay_ns_min.unwrap()) >= RTT.as_nanos() / 2);
    }
    assert_eq!((summary.connections, summary.connections_max, summary.unreachable), (1, 1, 0));
}

#[test]
fn each_question_takes_a_round_trip_and_so_does_the_handshake() {
    let (address, served) = server(1, echo);
    let relay = Running::start(address, RTT, 4096);
    let begin = Instant::now();
    let mut client = relay.client();
    for asked in 0..10_u8 {
        client.write_all(&[asked]).unwrap();
        let mut answer = [255];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [asked]);
        assert!(begin.elapsed() >= RTT * (u32::from(asked) + 2), "question {asked}");
    }
    drop(client);
    served.join().unwrap();
    let summary = relay.end();
    assert_eq!((summary.to_server.chunks, summary.to_client.chunks), (10, 10));
    assert!(summary.to_server.late_ns_p50 <= summary.to_server.late_ns_max);
}

#[test]
fn a_client_that_has_said_all_still_hears_the_answer() {
    for rtt in [Duration::ZERO, RTT] {
        let (address, served) = server(1, |mut stream| {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(format!("{} bytes", all.len()).as_bytes()).unwrap();
        });
        let relay = Running::start(address, rtt, 4096);
        let mut client = relay.client();
        client.write_all(&noise(2, 100_000)).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "100000 bytes");
        served.join().unwrap();
        relay.end();
    }
}

#[test]
fn many_connections_do_not_get_into_each_others_way() {
    const CLIENTS: usize = 300;
    let (address, served) = server(CLIENTS, echo);
    let relay = Running::start(address, RTT, 4096);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| relay.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&noise(number as u64, 1000)).unwrap();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let mut heard = vec![0; 1000];
        client.read_exact(&mut heard).unwrap();
        assert!(heard == noise(number as u64, 1000), "client {number}");
    }
    drop(clients);
    served.join().unwrap();
    assert_eq!(relay.end().connections_max, CLIENTS);
}

#[test]
fn a_server_that_does_not_read_is_felt_by_the_client() {
    const WINDOW: usize = 64 << 10;
    const ALL: usize = 64 << 20;
    const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Running::start(listener.local_addr().unwrap(), RTT, WINDOW);
    let mut client = relay.client();
    let mut server = patient(listener.accept().unwrap().0);
    client.set_nonblocking(true).unwrap();
    let chunk = noise(3, 1 << 16);
    let mut sent = 0;
    // The kernel's buffers take some megabytes; when nothing more goes for a while, all of them are full.
    while poll(&mut [PollFd::new(&client, PollFlags::OUT)], Some(&QUIET)).unwrap() > 0 {
        assert!(sent < ALL, "nobody was held back");
        match client.write(&chunk[sent % chunk.len()..]) {
            Ok(count) => sent += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    server.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), sent);
    assert!(heard.iter().zip(chunk.iter().cycle()).all(|(got, wanted)| got == wanted));
    drop((client, server));
    assert!(relay.end().to_server.held_bytes_max <= WINDOW);
}

#[test]
fn a_server_that_is_not_there_cuts_the_client_off() {
    for rtt in [Duration::ZERO, RTT] {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let relay = Running::start(nobody, rtt, 4096);
        let mut client = relay.client();
        assert_eq!(client.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(relay.end().unreachable, 1);
    }
}

#[test]
fn a_connection_that_breaks_on_one_side_breaks_on_the_other() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Running::start(listener.local_addr().unwrap(), RTT, 4096);
    for client_breaks in [true, false] {
        let mut client = relay.client();
        let mut server = patient(listener.accept().unwrap().0);
        // Both connections are there before either breaks.
        client.write_all(&[1]).unwrap();
        server.read_exact(&mut [0]).unwrap();
        let (breaks, mut hears) = if client_breaks { (client, server) } else { (server, client) };
        set_socket_linger(&breaks, Some(Duration::ZERO)).unwrap();
        drop(breaks);
        assert_eq!(hears.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    relay.end();
}

#[test]
fn an_address_that_is_taken_and_a_wrong_unit_are_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let holder = TcpListener::bind(taken).unwrap();
    let spec = |document| serde_json::from_value::<RelaySpec>(document).unwrap();
    let Err(error) = Relay::bind(&spec(json!({"listen": taken, "to": taken, "rtt_ns": 1}))) else { panic!("bound") };
    assert!(error.message.contains(&taken.to_string()), "{error}");
    drop(holder);
    let Err(error) = Relay::bind(&spec(json!({"to": taken, "rtt_ns": 1_000_000_000_000_u64}))) else { panic!("bound") };
    assert!(error.message.contains("longer"), "{error}");
}

/// Answers a question of four bytes itself, lets everything else pass, and keeps it.
#[derive(Default)]
struct Listener {
    client: Vec<u8>,
    server: Vec<u8>,
    opened: Option<SocketAddr>,
    closed: u32,
    woken: u32,
}

impl Tap for Listener {
    fn opened(&mut self, connection: u64, _: u64, from: Option<SocketAddr>) {
        assert_eq!(connection, 0);
        self.opened = from;
    }

    fn client(&mut self, _: u64, _: u64, bytes: &[u8]) -> Passage {
        match bytes {
            [b'a', ..] if bytes.len() < 4 => Passage::Wait,
            [b'a', ..] => Passage::Answer { taken: 4, with: b"N" },
            [b'x', ..] => Passage::Cut,
            _ => {
                self.client.extend_from_slice(bytes);
                Passage::On
            }
        }
    }

    fn server(&mut self, _: u64, _: u64, bytes: &[u8]) {
        self.server.extend_from_slice(bytes);
    }

    fn closed(&mut self, _: u64, _: u64) {
        self.closed += 1;
    }

    fn due_ns(&self) -> Option<u64> {
        // Once it is closed: at once.
        (self.closed > 0).then_some(0)
    }

    fn wake(&mut self, _: u64) -> bool {
        self.woken += 1;
        self.woken < 3
    }
}

#[test]
fn a_tap_hears_both_sides_answers_cuts_and_ends_the_relay() {
    let (address, served) = server(1, |mut stream| {
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
        assert_eq!(stream.read(&mut heard).unwrap_or(0), 0);
    });
    let spec: RelaySpec = serde_json::from_value(json!({"to": address, "rtt_ns": 0})).unwrap();
    let relay = Relay::bind(&spec).unwrap();
    let at = relay.address();
    let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let running = spawn(move || {
        let mut tap = Listener::default();
        let summary = relay.run_with(stop, &mut tap).unwrap();
        (tap, summary)
    });
    let mut client = patient(TcpStream::connect(at).unwrap());
    let from = client.local_addr().unwrap();
    let mut heard = [0; 5];
    client.write_all(b"a").unwrap();
    client.write_all(b"sk?hello").unwrap();
    client.read_exact(&mut heard[..1]).unwrap();
    assert_eq!(&heard[..1], b"N");
    client.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
    client.write_all(b"x").unwrap();
    assert_eq!(client.read(&mut heard).unwrap_or(0), 0, "it is cut");
    let (tap, summary) = running.join().unwrap();
    served.join().unwrap();
    assert_eq!((tap.opened, tap.client.as_slice(), tap.server.as_slice()), (Some(from), &b"hello"[..], &b"hello"[..]));
    assert_eq!((tap.closed, tap.woken, summary.connections), (1, 3, 1));
}
