//! Messages of the client, as protocol version 3 has them, appended to a buffer that is sent in one go.
//!
//! Formats from PostgreSQL's documentation, "Message Formats" (version 18, 2025-09).

use std::io;

/// Version 3.0, which every supported server speaks.
const PROTOCOL: i32 = 196_608;
/// Code of the request for TLS.
const SSL_REQUEST: i32 = 80_877_103;
/// Code of the request to cancel what another session does.
const CANCEL_REQUEST: i32 = 80_877_102;

/// Appends a message: its tag, its length, and what `body` writes.
fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    sized(out, body);
}

fn sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = u32::try_from(out.len() - at).expect("a message is shorter than 4 GiB");
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// The startup message: user, database and settings of the session.
pub fn startup(out: &mut Vec<u8>, settings: &[(&str, &str)]) {
    sized(out, |out| {
        out.extend_from_slice(&PROTOCOL.to_be_bytes());
        for (key, value) in settings {
            text(out, key);
            text(out, value);
        }
        out.push(0);
    });
}

/// Asks for TLS; the answer is one byte.
pub fn ssl_request(out: &mut Vec<u8>) {
    sized(out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

/// Asks, on a connection of its own, to cancel the statement of the session that was given this process id and key.
pub fn cancel_request(out: &mut Vec<u8>, process_id: i32, key: &[u8]) {
    sized(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&process_id.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// A password, in clear or as its MD5 hash.
pub fn password(out: &mut Vec<u8>, password: &[u8]) {
    message(out, b'p', |out| {
        out.extend_from_slice(password);
        out.push(0);
    });
}

/// Chooses a SASL mechanism, with the first words of it.
pub fn sasl_begin(out: &mut Vec<u8>, mechanism: &str, first: &[u8]) {
    message(out, b'p', |out| {
        text(out, mechanism);
        out.extend_from_slice(&i32::try_from(first.len()).expect("short").to_be_bytes());
        out.extend_from_slice(first);
    });
}

/// The next message of SASL.
pub fn sasl(out: &mut Vec<u8>, words: &[u8]) {
    message(out, b'p', |out| out.extend_from_slice(words));
}

/// A query of the simple protocol; `write` appends its text.
pub fn query_of(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'Q', |out| {
        write(out);
        out.push(0);
    });
}

/// A statement for later, or the unnamed one. Types of parameters are the server's to find.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &str) {
    parse_with(out, name, sql, (0, &[]));
}

/// The same with the types of the first parameters, by their numbers in `pg_type`. An error, and nothing is appended, if there are
/// more of them than the protocol counts.
pub fn parse_typed(out: &mut Vec<u8>, name: &str, sql: &str, types: &[u32]) -> io::Result<()> {
    let count = u16::try_from(types.len()).map_err(|_| too_many())?;
    parse_with(out, name, sql, (count, types));
    Ok(())
}

fn parse_with(out: &mut Vec<u8>, name: &str, sql: &str, (count, types): (u16, &[u32])) {
    message(out, b'P', |out| {
        text(out, name);
        text(out, sql);
        out.extend_from_slice(&count.to_be_bytes());
        types.iter().for_each(|one| out.extend_from_slice(&one.to_be_bytes()));
    });
}

fn too_many() -> io::Error {
    let most = u16::MAX;
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("a statement has {most} parameters at most, of less than 2 GiB each"),
    )
}

/// Drops a prepared statement; one that is not there is no error.
pub fn close(out: &mut Vec<u8>, name: &str) {
    message(out, b'C', |out| {
        out.push(b'S');
        text(out, name);
    });
}

/// Binds parameters as text, describes the portal, executes, and synchronises.
///
/// The description is not read here. libpq asks for it with each execution, and a server that is not asked does less
/// for a transaction than under pgbench.
///
/// # Errors
/// If there are more or longer parameters than the protocol counts; then nothing is appended.
pub fn execute<'a>(
    out: &mut Vec<u8>,
    name: &str,
    parameters: impl Iterator<Item = Option<&'a [u8]>>,
) -> io::Result<()> {
    let begin = out.len();
    let mut counted = Some(0_u16);
    message(out, b'B', |out| {
        text(out, "");
        text(out, name);
        out.extend_from_slice(&0_i16.to_be_bytes()); // all parameters are text
        let at = out.len();
        out.extend_from_slice(&[0; 2]);
        for parameter in parameters {
            let length = parameter.map_or(Ok(-1), |text| i32::try_from(text.len()));
            let (Ok(length), Some(count)) = (length, counted.and_then(|count| count.checked_add(1))) else {
                counted = None;
                return;
            };
            counted = Some(count);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(parameter.unwrap_or_default());
        }
        out[at..at + 2].copy_from_slice(&counted.unwrap_or_default().to_be_bytes());
        out.extend_from_slice(&0_i16.to_be_bytes()); // all columns are text
    });
    if counted.is_none() {
        out.truncate(begin);
        return Err(too_many());
    }
    message(out, b'D', |out| out.extend_from_slice(b"P\0"));
    message(out, b'E', |out| out.extend_from_slice(&[0; 5])); // unnamed portal, all rows
    Ok(())
}

/// End of a pipeline: the server answers with its state.
pub fn sync(out: &mut Vec<u8>) {
    message(out, b'S', |_| ());
}

/// Begins a message with bytes of rows for COPY, which are to be sent behind it.
pub fn copy_data(out: &mut Vec<u8>, bytes: usize) {
    out.push(b'd');
    let length = u32::try_from(bytes + 4).expect("a message is shorter than 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
}

/// Ends the rows of a COPY.
pub fn copy_done(out: &mut Vec<u8>) {
    message(out, b'c', |_| ());
}

/// Ends a COPY, whose rows are discarded.
pub fn copy_fail(out: &mut Vec<u8>, why: &str) {
    message(out, b'f', |out| text(out, why));
}

/// Ends the session.
pub fn terminate(out: &mut Vec<u8>) {
    message(out, b'X', |_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_counts_itself_and_not_the_tag() {
        let mut out = Vec::new();
        query_of(&mut out, |out| out.extend_from_slice(b"BEGIN"));
        assert_eq!(out, b"Q\0\0\0\x0aBEGIN\0");
    }

    #[test]
    fn a_statement_is_closed_by_its_name() {
        let mut out = Vec::new();
        close(&mut out, "s1");
        assert_eq!(out, b"C\0\0\0\x08Ss1\0");
    }

    #[test]
    fn an_order_to_cancel_has_sixteen_bytes() {
        let mut out = Vec::new();
        cancel_request(&mut out, 7, &[1, 2, 3, 4]);
        assert_eq!(out, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\x01\x02\x03\x04");
    }

    #[test]
    fn rows_for_copy_are_announced_by_their_length() {
        let mut out = Vec::new();
        copy_data(&mut out, 3);
        assert_eq!(out, b"d\0\0\0\x07");
    }

    #[test]
    fn more_parameters_than_the_protocol_counts_are_refused_and_nothing_is_appended() {
        for (count, taken) in [(65_535, true), (65_536, false)] {
            let mut out = b"before".to_vec();
            let parameters = || std::iter::repeat_n(Some(b"1".as_slice()), count);
            assert_eq!(execute(&mut out, "", parameters()).is_ok(), taken);
            assert_eq!(out.len() > 6, taken);
            out.truncate(6);
            assert_eq!(parse_typed(&mut out, "", "SELECT", &vec![23; count]).is_ok(), taken);
            assert_eq!(out.len() > 6, taken);
        }
    }

    #[test]
    fn an_execution_binds_describes_and_executes() {
        let mut out = Vec::new();
        execute(&mut out, "s1", [Some(b"42".as_slice())].into_iter()).unwrap();
        let bind = b"B\0\0\0\x14\0s1\0\0\0\0\x01\0\0\0\x0242\0\0";
        assert_eq!(&out[..bind.len()], bind);
        assert_eq!(&out[bind.len()..], b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0");
    }
}
