//! What the server reports as an error.

/// An error as the server reported it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    /// Five characters of SQLSTATE.
    pub sqlstate: String,
    /// The message. Only this is shown or recorded: the other fields may hold values of rows.
    pub message: String,
    /// More of the message; empty where there is none.
    pub detail: String,
    /// Where it happened, one line each: `COPY t, line 3, column a: "x"`; empty where the server does not say.
    pub context: String,
    /// The column that a constraint is about; empty where there is none.
    pub column: String,
}

impl ServerError {
    /// From the body of an `ErrorResponse`.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|&byte| byte == 0) {
            let Some((&kind, value)) = field.split_first() else { break };
            let value = || String::from_utf8_lossy(value).into_owned();
            match kind {
                b'C' => error.sqlstate = value(),
                b'M' => error.message = value(),
                b'D' => error.detail = value(),
                b'W' => error.context = value(),
                b'c' => error.column = value(),
                _ => (),
            }
        }
        error
    }

    /// Whether the server ended the session with it (class 57P: shutdown, crash of another process, starting up).
    pub fn ends_session(&self) -> bool {
        self.sqlstate.starts_with("57P")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn state_and_message_of_an_error_are_kept() {
        let error = ServerError::parse(b"SERROR\0VERROR\0C42P01\0Mrelation \"t\" does not exist\0P15\0\0");
        assert_eq!(error.sqlstate, "42P01");
        assert_eq!(error.message, "relation \"t\" does not exist");
    }

    proptest! {
        #[test]
        fn whatever_a_server_reports_is_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let error = ServerError::parse(&body);
            // A byte that is no UTF-8 becomes three.
            let bytes: usize = [&error.sqlstate, &error.message, &error.detail, &error.context, &error.column]
                .iter()
                .map(|field| field.len())
                .sum();
            prop_assert!(bytes <= 3 * body.len());
        }
    }
}
