//! One JSON line asks a daemon, one JSON line answers.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pgdyno_host::{Fault, Result};
use serde_json::{Value, json};

/// Sends a request and waits for its answer, which may be an error.
///
/// # Errors
/// `UnexpectedEof` when the daemon ended before it answered, `WouldBlock` or `TimedOut` when it did not answer in time.
pub(crate) fn ask(stream: &UnixStream, request: &Value, timeout: Duration) -> io::Result<Result<Value>> {
    stream.set_read_timeout(Some(timeout))?;
    send(stream, request)?;
    let mut line = String::new();
    if BufReader::new(stream).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let answer: Value = serde_json::from_str(&line)?;
    Ok(error_in(&answer).map_or(Ok(answer), Err))
}

/// Writes one JSON line.
pub(crate) fn send(mut stream: &UnixStream, document: &Value) -> io::Result<()> {
    let mut text = document.to_string();
    text.push('\n');
    stream.write_all(text.as_bytes())
}

/// The answer that is an error.
pub(crate) fn error_document(error: &Fault) -> Value {
    let Fault { message, remedy, of_host, code, data } = error;
    json!({"error": {"message": message, "remedy": remedy, "of_host": of_host, "code": code, "data": data}})
}

fn error_in(answer: &Value) -> Option<Fault> {
    let error = answer.get("error")?;
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    let of_host = error["of_host"].as_bool().unwrap_or(false);
    let data = error["data"].clone();
    Some(Fault { message: text("message"), remedy: text("remedy"), of_host, code: text("code").into(), data })
}

/// Whether the asking process still waits for the answer. One that was interrupted or killed has closed its end.
pub(crate) fn is_awaited(stream: &UnixStream) -> bool {
    let mut byte = 0u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: one byte is read into `byte`, which outlives the call.
    let read = unsafe { libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
    read != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_gone_does_not_wait_for_an_answer() {
        let (asking, asked) = UnixStream::pair().expect("a pair of sockets");
        assert!(is_awaited(&asked));
        send(&asking, &json!({"command": "stats"})).expect("it is heard");
        assert!(is_awaited(&asked), "more may come");
        let mut line = String::new();
        BufReader::new(&asked).read_line(&mut line).expect("a line");
        drop(asking);
        assert!(!is_awaited(&asked));
    }
}
