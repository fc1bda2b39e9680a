//! jsonlog (PostgreSQL 15 on): one document a line (`jsonlog.c`; documentation, "Using JSON-Format Log Output").

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

use super::found::{Found, Sink};
use crate::entry::{Entry, transaction_of};
use crate::input::{End, Input, line_length};
use crate::time::instant;

/// What is used of a document.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    error_severity: Cow<'a, str>,
    pid: Option<u32>,
    #[serde(borrow)]
    user: Option<Cow<'a, str>>,
    #[serde(borrow)]
    dbname: Option<Cow<'a, str>>,
    #[serde(borrow)]
    remote_host: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    line_num: Option<u64>,
    #[serde(borrow)]
    ps: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_start: Option<Cow<'a, str>>,
    #[serde(borrow)]
    vxid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    state_code: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow)]
    detail: Option<Cow<'a, str>>,
    #[serde(borrow)]
    context: Option<Cow<'a, str>>,
    #[serde(borrow)]
    statement: Option<Cow<'a, str>>,
    #[serde(borrow)]
    application_name: Option<Cow<'a, str>>,
}

/// Whether a line is an entry.
pub(super) fn is_entry(line: &str) -> bool {
    serde_json::from_str::<Document<'_>>(line).is_ok()
}

pub(super) fn read<E: From<io::Error>>(input: &mut Input<'_>, sink: &mut Sink<'_, E>) -> Result<(), E> {
    loop {
        let Some(next) = input.next(line_length)? else { return Ok(()) };
        if next.end == End::TooFar {
            sink(Found::TooLong)?;
            input.skip_line()?;
            continue;
        }
        let line = &input.seen()[..next.length];
        let read = std::str::from_utf8(line).map(|text| serde_json::from_str(text).ok().and_then(entry));
        sink(match &read {
            Err(_) => Found::NotText,
            Ok(Some(entry)) => Found::Entry(entry),
            Ok(None) => Found::Torn,
        })?;
        input.take(next.length);
    }
}

fn entry(from: Document<'_>) -> Option<Entry<'_>> {
    Some(Entry {
        time_us: instant(&from.timestamp)?.0,
        pid: from.pid,
        session: from.session_id,
        line: from.line_num,
        additions: 0,
        session_begin_us: from.session_start.as_deref().and_then(instant).map(|(us, _, _)| us),
        user: from.user,
        database: from.dbname,
        host: from.remote_host,
        application: from.application_name.filter(|name| !name.is_empty()),
        transaction: from.vxid.as_deref().and_then(transaction_of),
        tag: from.ps,
        severity: from.error_severity,
        sqlstate: from.state_code,
        message: from.message.unwrap_or_default(),
        detail: from.detail,
        context: from.context,
        statement: from.statement,
    })
}
