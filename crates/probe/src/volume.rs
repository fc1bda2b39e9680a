//! The emulated volume's own counters, asked for over its control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::kept::unexpected;
use crate::sample::Volume;
use crate::spec::VolumeSpec;

/// A daemon that does not answer in this time is busy or hung; the sample continues without it.
const PATIENCE: Duration = Duration::from_millis(300);
const REQUEST: &[u8] = b"{\"command\":\"stats\"}\n";

/// Asks one volume's daemon, over a connection that is kept.
pub(crate) struct VolumeReader {
    /// Its name among the gaps.
    pub(crate) what: String,
    volume: String,
    socket: PathBuf,
    connection: Option<BufReader<UnixStream>>,
    line: String,
}

/// The part of the answer that is sampled: the counters as they are, whatever they are. The histograms are skipped.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    counters: &'a RawValue,
}

impl VolumeReader {
    pub(crate) fn new(spec: &VolumeSpec) -> Self {
        let socket = spec.state_dir.join("volumes").join(&spec.name).join("control.sock");
        Self {
            what: format!("volume.{}", spec.volume),
            volume: spec.volume.clone(),
            socket,
            connection: None,
            line: String::with_capacity(64 * 1024),
        }
    }

    /// Its counters now. After an error the next call connects again.
    pub(crate) fn read(&mut self) -> io::Result<Volume> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.socket)?,
        };
        connection.get_mut().write_all(REQUEST)?;
        self.line.clear();
        if connection.read_line(&mut self.line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.connection = Some(connection);
        Ok(Volume { volume: self.volume.clone(), counters: parse(&self.line)? })
    }
}

fn connect(socket: &PathBuf) -> io::Result<BufReader<UnixStream>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::with_capacity(64 * 1024, stream))
}

fn parse(line: &str) -> io::Result<Box<RawValue>> {
    let answer: Answer = serde_json::from_str(line).map_err(|_| unexpected("counters"))?;
    Ok(answer.counters.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A daemon that answers each connection once and then hangs up.
    fn daemon(listener: UnixListener, answers: Vec<&'static str>) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let mut request = String::new();
                reader.read_line(&mut request).unwrap();
                assert_eq!(request.as_bytes(), REQUEST);
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        })
    }

    #[test]
    fn counters_pass_through_and_a_lost_daemon_is_asked_again() {
        let state_dir = std::env::temp_dir().join(format!("pgdyno-probe-{}-volume", std::process::id()));
        let directory = state_dir.join("volumes/v");
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(directory.join("control.sock")).unwrap();
        let answer = "{\"t_ns\":5,\"counters\":{\"read_ops\":7},\"histograms\":{\"read_latency_ns\":[[1,2]]}}\n";
        let serving = daemon(listener, vec![answer, answer]);
        let spec = VolumeSpec { volume: "data".into(), name: "v".into(), state_dir: state_dir.clone() };
        let mut reader = VolumeReader::new(&spec);
        assert_eq!(reader.read().unwrap().counters.get(), "{\"read_ops\":7}");
        assert!(reader.read().is_err(), "the daemon hung up");
        assert_eq!(reader.read().unwrap().counters.get(), "{\"read_ops\":7}");
        serving.join().unwrap();
        std::fs::remove_dir_all(state_dir).unwrap();
    }

    #[test]
    fn an_answer_without_counters_is_an_error() {
        assert!(parse("{\"error\":{\"message\":\"no\"}}").is_err());
    }
}
