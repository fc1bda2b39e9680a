//! Entries in JSON, one document each: jsonlog (PostgreSQL 15 on; `jsonlog.c`; documentation, "Using JSON-Format Log Output"), and what
//! CloudNativePG makes of a csvlog, which has the csvlog's columns below `record`.

use std::borrow::Cow;

use serde::Deserialize;

use crate::entry::{Entry, host_and_port, transaction_of};
use crate::time::instant;

/// What is used of a document of jsonlog.
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
    remote_port: Option<Number>,
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

/// A number, which some write as a text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Plain(i64),
    Text(String),
}

impl Number {
    pub(super) fn value(&self) -> Option<i64> {
        match self {
            Self::Plain(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

/// What is used of a document of CloudNativePG.
#[derive(Deserialize)]
struct Logged<'a> {
    #[serde(borrow)]
    record: Record<'a>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    log_time: Cow<'a, str>,
    #[serde(borrow)]
    error_severity: Cow<'a, str>,
    #[serde(borrow)]
    user_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    database_name: Option<Cow<'a, str>>,
    process_id: Option<Number>,
    #[serde(borrow)]
    connection_from: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    session_line_num: Option<Number>,
    #[serde(borrow)]
    command_tag: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_start_time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    virtual_transaction_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    sql_state_code: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow)]
    detail: Option<Cow<'a, str>>,
    #[serde(borrow)]
    context: Option<Cow<'a, str>>,
    #[serde(borrow)]
    query: Option<Cow<'a, str>>,
    #[serde(borrow)]
    application_name: Option<Cow<'a, str>>,
}

/// Which documents a log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Documents {
    /// Those of jsonlog.
    Jsonlog,
    /// Those of CloudNativePG.
    CloudNativePg,
}

impl Documents {
    /// Those of which a line is one.
    pub(super) fn of(line: &str) -> Option<Self> {
        let kinds = [Self::Jsonlog, Self::CloudNativePg];
        kinds.into_iter().find(|kind| line.trim_start().starts_with('{') && kind.entry(line).is_some())
    }

    /// The entry of a line; none if it is no document, or another one.
    pub(super) fn entry(self, line: &str) -> Option<Entry<'_>> {
        match self {
            Self::Jsonlog => serde_json::from_str(line).ok().and_then(of_jsonlog),
            Self::CloudNativePg => {
                serde_json::from_str(line).ok().and_then(|logged: Logged<'_>| of_csvlog(logged.record))
            }
        }
    }
}

fn of_jsonlog(from: Document<'_>) -> Option<Entry<'_>> {
    let time = instant(&from.timestamp)?;
    Some(Entry {
        time_us: time.us,
        zone: time.zone,
        received_us: None,
        cut: false,
        pid: from.pid,
        session: from.session_id,
        line: from.line_num,
        additions: 0,
        session_begin_us: from.session_start.as_deref().and_then(instant).map(|begin| begin.us),
        user: from.user,
        database: from.dbname,
        host: from.remote_host,
        port: from.remote_port.and_then(|port| port.value()?.try_into().ok()),
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

fn of_csvlog(from: Record<'_>) -> Option<Entry<'_>> {
    let time = instant(&from.log_time)?;
    let address = from.connection_from.as_deref().map(host_and_port);
    Some(Entry {
        time_us: time.us,
        zone: time.zone,
        received_us: None,
        cut: false,
        pid: from.process_id.and_then(|pid| pid.value()?.try_into().ok()),
        session: from.session_id,
        line: from.session_line_num.and_then(|line| line.value()?.try_into().ok()),
        additions: 0,
        session_begin_us: from.session_start_time.as_deref().and_then(instant).map(|begin| begin.us),
        port: address.and_then(|(_, port)| port),
        host: address.filter(|(host, _)| !host.is_empty()).map(|(host, _)| Cow::Owned(host.to_owned())),
        user: from.user_name.filter(|name| !name.is_empty()),
        database: from.database_name.filter(|name| !name.is_empty()),
        application: from.application_name.filter(|name| !name.is_empty()),
        transaction: from.virtual_transaction_id.as_deref().and_then(transaction_of),
        tag: from.command_tag,
        severity: from.error_severity,
        sqlstate: from.sql_state_code.filter(|state| state.len() == 5),
        message: from.message.unwrap_or_default(),
        detail: from.detail.filter(|text| !text.is_empty()),
        context: from.context.filter(|text| !text.is_empty()),
        statement: from.query.filter(|text| !text.is_empty()),
    })
}
