//! A session that blocks: for loading, and for what is done before and after a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::copy_in::CopyIn;
use crate::exchange::{Exchange, QueryResult};
use crate::fault::Fault;
use crate::server::Server;

/// One session.
pub struct Connection {
    exchange: Exchange,
    server_version: String,
}

impl Connection {
    /// Connects and logs in. Once `stop` is true, the statement under way is cancelled, and whatever waits here ends with an
    /// error.
    pub fn open(server: &Server, stop: &Arc<AtomicBool>) -> Result<Self, Fault> {
        let (exchange, server_version) = Exchange::open(server, stop)?;
        let mut connection = Self { exchange, server_version };
        if connection.exchange.is_remote() {
            connection.query(&server.keepalive.sql())?;
        }
        Ok(connection)
    }

    /// As the server writes it: `18.1`.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Sends SQL and waits for the end of the answer.
    pub fn query(&mut self, sql: &str) -> Result<QueryResult, Fault> {
        self.exchange.send_query(sql)?;
        self.exchange.end_of_answer()
    }

    /// Sends `COPY ... FROM STDIN`, and then what `more` appends until it says false. Returns how many rows the server
    /// took.
    pub fn copy_in(&mut self, sql: &str, mut more: impl FnMut(&mut Vec<u8>) -> bool) -> Result<u64, Fault> {
        let mut copying = self.begin_copy_in(sql)?;
        let mut rows = Vec::new();
        loop {
            rows.clear();
            let going = more(&mut rows);
            if !copying.send(&rows)? || !going {
                return copying.end();
            }
        }
    }

    /// Sends `COPY ... FROM STDIN`, with other statements before it or not. Rows are sent by what is returned, which must
    /// be ended.
    pub fn begin_copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, Fault> {
        self.exchange.send_query(sql)?;
        self.exchange.await_copy()?;
        Ok(CopyIn::new(&mut self.exchange))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.exchange.terminate();
    }
}
