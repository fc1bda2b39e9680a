//! How a connection begins, before its messages have tags (PostgreSQL's documentation, "StartupMessage").

use pgdyno_capture::{SessionFacts, beginning};
use pgdyno_relay::Passage;

use crate::messages::Fields;

/// What a first message asks for, in the place of a version.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
/// Length and code.
const ASKING_BYTES: usize = 8;
/// How a client of TLS begins that does not ask first.
const TLS_RECORD: u8 = 0x16;
/// A server cuts the names of roles, databases and applications here (`NAMEDATALEN`).
const NAME_BYTES_MAX: usize = 63;
/// No server takes a longer one (`MAX_STARTUP_PACKET_LENGTH`).
const STARTUP_BYTES_MAX: usize = 10_000;

/// What the beginning of a connection is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Too little has come.
    Wait,
    /// The client asks whether there is encryption; it is told that there is none.
    AsksEncryption { tls: bool, passage: Passage },
    /// TLS without asking.
    IsEncrypted,
    /// A request to cancel, or another protocol: it passes.
    Other,
    /// Who it is follows.
    Startup,
}

/// Tells what a connection begins with.
pub(crate) fn begin(bytes: &[u8]) -> Beginning {
    if bytes.first() == Some(&TLS_RECORD) {
        return Beginning::IsEncrypted;
    }
    let mut fields = Fields::of(bytes);
    let (Some(length), Some(code)) = (fields.u32(), fields.u32()) else { return Beginning::Wait };
    match code {
        TLS | GSS if length as usize == ASKING_BYTES => {
            Beginning::AsksEncryption { tls: code == TLS, passage: Passage::Answer { taken: ASKING_BYTES, with: b"N" } }
        }
        CANCEL => Beginning::Other,
        _ if code >> 16 == 3 && (ASKING_BYTES..=STARTUP_BYTES_MAX).contains(&(length as usize)) => Beginning::Startup,
        _ => Beginning::Other,
    }
}

/// Length of a startup message.
pub(crate) fn startup_length(bytes: &[u8]) -> usize {
    Fields::of(bytes).u32().unwrap_or(0) as usize
}

/// A name as a server keeps it.
pub(crate) fn name_of(bytes: &[u8]) -> String {
    beginning(&String::from_utf8_lossy(bytes), NAME_BYTES_MAX).to_owned()
}

/// Whose session it is. None if it is one of replication, whose stream is not of statements.
pub(crate) fn facts_of(startup: &[u8]) -> Option<SessionFacts> {
    let mut fields = Fields::of(startup.get(ASKING_BYTES..)?);
    let mut facts = SessionFacts::default();
    while let (Some(key), Some(value)) = (fields.text().filter(|key| !key.is_empty()), fields.text()) {
        let value = name_of(value);
        match key {
            b"user" => facts.user = value,
            b"database" => facts.database = value,
            b"application_name" => facts.application = value,
            b"replication" if !["false", "off", "no", "0"].contains(&value.to_ascii_lowercase().as_str()) => {
                return None;
            }
            _ => (),
        }
    }
    if facts.database.is_empty() {
        facts.database.clone_from(&facts.user);
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(code: u32) -> Vec<u8> {
        [8_u32.to_be_bytes(), code.to_be_bytes()].concat()
    }

    fn startup(pairs: &str) -> Vec<u8> {
        let body = pairs.replace(' ', "\0");
        let length = u32::try_from(body.len() + 10).unwrap();
        [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), body.as_bytes(), b"\0\0"].concat()
    }

    #[test]
    fn encryption_is_answered_and_a_request_to_cancel_passes() {
        let answered = Passage::Answer { taken: 8, with: b"N" };
        assert_eq!(begin(&asking(TLS)), Beginning::AsksEncryption { tls: true, passage: answered });
        assert_eq!(begin(&asking(GSS)), Beginning::AsksEncryption { tls: false, passage: answered });
        assert_eq!(begin(&asking(TLS)[..7]), Beginning::Wait);
        assert_eq!(begin(&[0x16, 3, 1]), Beginning::IsEncrypted);
        assert_eq!(begin(&[&[0, 0, 0, 16][..], &CANCEL.to_be_bytes(), &[0; 8]].concat()), Beginning::Other);
        assert_eq!(begin(b"GET / HTTP/1.1"), Beginning::Other);
        assert_eq!(begin(&startup("user app")), Beginning::Startup);
    }

    #[test]
    fn a_session_is_whose_its_startup_says() {
        let facts = facts_of(&startup("user app database shop application_name till client_encoding UTF8")).unwrap();
        assert_eq!((facts.user.as_str(), facts.database.as_str(), facts.application.as_str()), ("app", "shop", "till"));
        assert_eq!(facts_of(&startup("user app")).unwrap().database, "app");
        assert!(facts_of(&startup("user app replication database")).is_none());
        assert!(facts_of(&startup("user app replication off")).is_some());
    }
}
