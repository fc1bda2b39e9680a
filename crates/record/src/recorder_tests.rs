//! A recorder of sessions that are spoken here, without sockets: what a client may do to it, and what is left of it.

use std::path::{Path, PathBuf};

use pgdyno_capture::{Account, CaptureFile, SessionFacts, Writer};
use pgdyno_clock::{SECOND_NS, monotonic_ns};
use pgdyno_relay::{Passage, Tap};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Recorder;
use crate::store::Store;

/// A file that is gone at the end.
struct Output(PathBuf);

impl Output {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pgdyno-{name}-{}.capture", std::process::id())))
    }

    fn read(&self) -> Read {
        let mut file = CaptureFile::open(&self.0).unwrap();
        let contents = file.contents();
        let mut texts = Vec::new();
        for session in 0..contents.sessions.len() {
            let mut found = Vec::new();
            file.calls(session, |call| found.push(call.text.clone())).unwrap();
            texts.push(found);
        }
        Read { account: contents.account, sessions: contents.sessions, texts }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What a capture has.
struct Read {
    account: Account,
    sessions: Vec<SessionFacts>,
    texts: Vec<Vec<String>>,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &length.to_be_bytes()[..], body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// A recorder that is spoken to.
struct Spoken {
    recorder: Recorder<'static, Vec<u8>>,
    now_ns: u64,
}

impl Spoken {
    fn new(output: &Path) -> Self {
        let (now_ns, out) = (monotonic_ns(), Box::leak(Box::default()));
        let store = Store::new(Writer::record(output).unwrap());
        Self { recorder: Recorder::new(store, now_ns, None, out), now_ns }
    }

    fn connect(&mut self, connection: u64) {
        self.recorder.opened(connection, self.now_ns, None);
        let body = b"\0\x03\0\0user\0app\0\0";
        let startup = [&u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], body].concat();
        self.client(connection, &startup);
    }

    fn log_in(&mut self, connection: u64) {
        self.connect(connection);
        let ready = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        self.recorder.server(connection, self.now_ns, &ready);
    }

    /// All of it passes on, whatever it is, as it would come by the relay.
    fn client(&mut self, connection: u64, bytes: &[u8]) {
        for part in bytes.chunks(64 << 10) {
            self.now_ns += 1000;
            assert_eq!(self.recorder.client(connection, self.now_ns, part), Passage::On);
        }
    }

    fn answer(&mut self, connection: u64) {
        self.now_ns += 1000;
        let answer = [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
        self.recorder.server(connection, self.now_ns, &answer);
    }

    fn asks(&mut self, connection: u64, text: &str) {
        self.client(connection, &query(text));
        self.answer(connection);
    }

    /// Lets so many seconds pass.
    fn pass(&mut self, seconds: u64) {
        let until = self.now_ns + seconds * SECOND_NS;
        while let Some(due_ns) = self.recorder.due_ns().filter(|due_ns| *due_ns <= until) {
            self.now_ns = due_ns;
            assert!(self.recorder.wake(due_ns));
        }
        self.now_ns = until;
    }

    fn asks_of_another(&mut self, connection: u64) {
        self.log_in(connection);
        self.asks(connection, "SELECT 'another'");
    }

    fn finish(self) {
        let (store, _) = self.recorder.finish(self.now_ns);
        let (writer, account) = store.into_parts();
        writer.finish(&account).unwrap();
    }
}

#[test]
fn a_bug_in_reading_a_session_ends_its_recording_and_nothing_else() {
    let output = Output::new("poison");
    let mut spoken = Spoken::new(&output.0);
    spoken.log_in(1);
    spoken.log_in(2);
    spoken.asks(1, "SELECT 'before'");
    spoken.asks(2, "SELECT 'before'");
    spoken.client(1, &query("poison"));
    spoken.answer(1);
    spoken.asks(1, "SELECT 'behind'");
    spoken.asks(2, "SELECT 'behind'");
    spoken.finish();
    let read = output.read();
    assert_eq!(read.texts, [vec!["SELECT 'before'"], vec!["SELECT 'before'", "SELECT 'behind'"]]);
    assert!(read.sessions[0].incomplete.starts_with("a bug") && !read.sessions[0].ended, "{:?}", read.sessions[0]);
    assert!(read.sessions[1].incomplete.is_empty());
    assert_eq!(read.account.not_followed_sessions.values().sum::<u64>(), 1);
}

#[test]
fn what_is_sent_before_the_log_in_is_not_decoded() {
    let output = Output::new("early");
    let mut spoken = Spoken::new(&output.0);
    spoken.connect(1);
    spoken.client(1, &message(b'p', b"secret\0"));
    spoken.client(1, &[parse("", "SELECT 'early'"), message(b'B', &[0; 8])].concat());
    spoken.recorder.server(1, spoken.now_ns, &[message(b'R', &[0; 4]), message(b'Z', b"I")].concat());
    spoken.asks(1, "SELECT 'behind'");
    spoken.log_in(2);
    spoken.asks(2, "SELECT 'another'");
    spoken.finish();
    let read = output.read();
    assert_eq!(read.texts, [["SELECT 'another'"]]);
    assert_eq!(read.account.not_followed_sessions["statements before the log-in"], 1);
}

#[test]
fn a_session_that_takes_too_much_memory_is_not_followed_and_others_are() {
    let output = Output::new("memory");
    let mut spoken = Spoken::new(&output.0);
    spoken.log_in(1);
    spoken.log_in(2);
    spoken.asks(1, "SELECT 'before'");
    let text = "x".repeat(4 << 20);
    // Prepared under names, so that all of them stay.
    for number in 0..20 {
        spoken.client(1, &parse(&number.to_string(), &text));
        spoken.recorder.server(1, spoken.now_ns, &message(b'1', b""));
    }
    spoken.asks(1, "SELECT 'behind'");
    spoken.asks(2, "SELECT 'another'");
    spoken.finish();
    let read = output.read();
    assert_eq!(read.texts, [["SELECT 'before'"], ["SELECT 'another'"]]);
    assert_eq!(read.sessions[0].incomplete, "memory");
    assert_eq!(read.account.not_followed_sessions["memory"], 1);
}

#[test]
fn messages_that_are_begun_and_not_ended_have_a_limit_in_all() {
    let output = Output::new("begun");
    let mut spoken = Spoken::new(&output.0);
    let begun = [&[b'Q'][..], &i32::MAX.to_be_bytes()[..], &vec![b'x'; 12 << 20]].concat();
    for connection in 0..40 {
        spoken.log_in(connection);
        spoken.client(connection, &begun);
    }
    assert!(spoken.recorder.total.bytes() <= (256 << 20) + 40 * (64 << 10), "{}", spoken.recorder.total.bytes());
    spoken.log_in(99);
    spoken.asks(99, "SELECT 'another'");
    spoken.finish();
    assert_eq!(output.read().texts.last().unwrap().as_slice(), ["SELECT 'another'"]);
}

#[test]
fn answers_that_never_come_let_no_memory_grow() {
    let output = Output::new("unanswered");
    let mut spoken = Spoken::new(&output.0);
    spoken.log_in(1);
    let many = message(b'S', b"").repeat(10_000);
    for _ in 0..200 {
        spoken.client(1, &many);
    }
    assert!(spoken.recorder.total.bytes() <= 65 << 20, "{}", spoken.recorder.total.bytes());
    spoken.log_in(2);
    spoken.asks(2, "SELECT 1");
    spoken.finish();
    assert_eq!(output.read().account.not_followed_sessions["memory"], 1);
}

#[test]
fn a_recorder_that_is_killed_leaves_what_came_until_its_last_seconds() {
    let output = Output::new("killed");
    let mut spoken = Spoken::new(&output.0);
    spoken.log_in(1);
    spoken.log_in(2);
    for number in 0..50 {
        spoken.asks(1, &format!("SELECT {number}"));
        spoken.asks(2, "SELECT 'the same'");
    }
    spoken.pass(5);
    spoken.asks(1, "SELECT 'too late'");
    // Nothing of it is ended.
    std::mem::forget(spoken);
    let read = output.read();
    assert_eq!((read.texts[0].len(), read.texts[1].len()), (50, 50));
    assert!(read.account.unfinished && read.account.calls == 100 && read.account.not_ended == 2, "{:?}", read.account);
    assert!(read.sessions.iter().all(|session| session.user == "app" && session.calls == 50 && !session.ended));
    // Cut anywhere, it has what came before.
    let whole = std::fs::read(&output.0).unwrap();
    for length in (0..whole.len()).step_by(97) {
        std::fs::write(&output.0, &whole[..length]).unwrap();
        if let Ok(file) = CaptureFile::open(&output.0) {
            assert!(file.contents().account.unfinished);
        }
    }
}

#[test]
fn many_sessions_are_kept_in_checkpoints_and_not_in_memory() {
    let output = Output::new("sessions");
    let mut spoken = Spoken::new(&output.0);
    for connection in 0..5000 {
        spoken.log_in(connection);
        spoken.asks(connection, "SELECT 1");
        spoken.recorder.closed(connection, spoken.now_ns);
    }
    spoken.finish();
    let read = output.read();
    assert_eq!((read.sessions.len(), read.account.calls), (5000, 5000));
    assert!(read.texts.iter().all(|texts| texts == &["SELECT 1"]) && !read.account.unfinished);
}

/// Tries a case often enough, or for as many seconds as `PGDYNO_FUZZ_S` says.
fn fuzz<S: Strategy>(cases: u32, strategy: S, case: impl Fn(S::Value)) {
    let seconds = std::env::var("PGDYNO_FUZZ_S").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let end = std::time::Instant::now() + std::time::Duration::from_secs_f64(seconds);
    loop {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let tried = TestRunner::new(config).run(&strategy, |value| {
            case(value);
            Ok(())
        });
        tried.unwrap();
        if std::time::Instant::now() >= end {
            return;
        }
    }
}

/// Bytes of numbers that lengths, counts and types are made of, and others.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(&[0_i32, 1, -1, 2, 6, 23, 1007, 1700, i32::MAX, i32::MIN, 1 << 16][..])
            .prop_map(|number| number.to_be_bytes().to_vec()),
        prop::sample::select(&[0_i16, 1, -1, 2, i16::MAX, i16::MIN][..])
            .prop_map(|number| number.to_be_bytes().to_vec()),
        prop::sample::select(&["", "a", "SELECT f()", "COPY t FROM STDIN", "DEALLOCATE a", "\u{e9}"][..])
            .prop_map(|text| format!("{text}\0").into_bytes()),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

#[test]
fn no_message_of_either_side_finds_a_bug() {
    let spoken = prop_oneof![
        4 => (prop::sample::select(&b"QPBDECSFHXdcfp"[..]), body()).prop_map(|(tag, body)| (true, message(tag, &body))),
        4 => (prop::sample::select(&b"123tTnCIsEZSGRDKA"[..]), body()).prop_map(|(tag, body)| (false, message(tag, &body))),
        1 => (any::<bool>(), body()),
    ];
    fuzz(300, prop::collection::vec(spoken, 1..60), |messages| {
        let output = Output::new("fuzz");
        let mut spoken = Spoken::new(&output.0);
        spoken.log_in(1);
        for (is_client, bytes) in messages {
            if is_client {
                spoken.client(1, &bytes);
            } else {
                spoken.recorder.server(1, spoken.now_ns, &bytes);
            }
        }
        spoken.recorder.closed(1, spoken.now_ns);
        spoken.asks_of_another(2);
        let lost = &spoken.recorder.store.account.not_followed_sessions;
        assert!(!lost.keys().any(|reason| reason.starts_with("a bug")), "{lost:?}");
        spoken.finish();
        output.read();
    });
}

#[test]
fn beginnings_of_connections_of_any_bytes_pass() {
    let strategy = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..6);
    fuzz(200, strategy, |parts| {
        let output = Output::new("beginnings");
        let mut spoken = Spoken::new(&output.0);
        spoken.recorder.opened(1, spoken.now_ns, None);
        for part in &parts {
            let _ = spoken.recorder.client(1, spoken.now_ns, part);
            spoken.recorder.server(1, spoken.now_ns, part);
        }
        spoken.recorder.closed(1, spoken.now_ns);
        assert!(!spoken.recorder.store.account.not_followed_sessions.keys().any(|reason| reason.starts_with("a bug")));
    });
}
