//! What the server answers: how statements end, in which transaction, and what the types of values are.

use std::rc::Rc;

use pgdyno_capture::{Call, Ending, Protocol, takes_parameters};

use crate::answer::{Answer, columns_bytes, columns_of};
use crate::messages::{Fields, Message};
use crate::opening::name_of;
use crate::rows::Rows;
use crate::session::{Awaited, Portal, Session, Statement, Values, call_of};
use crate::store::Store;

/// SQLSTATE of an error that does not say it.
const UNKNOWN_STATE: [u8; 5] = *b"?????";
/// What ReadyForQuery says outside of a transaction.
const IDLE: u8 = b'I';

impl Session {
    /// Whether a message of the server is looked at.
    pub(crate) fn is_of_use_from_server(tag: u8) -> bool {
        matches!(tag, b'1' | b'2' | b'3' | b't' | b'T' | b'n' | b'C' | b'I' | b's' | b'E' | b'Z' | b'S' | b'G' | b'R')
    }

    /// Takes a message of the server.
    pub(crate) fn answered(&mut self, now_ns: u64, message: Message<'_>, store: &mut Store) {
        let mut fields = Fields::of(message.body);
        match message.tag {
            b'D' => self.row(message.body),
            // AuthenticationOk; other numbers ask for something.
            b'R' if fields.i32() == Some(0) => self.let_in(),
            b'1' | b'2' | b'3' => self.next(),
            b't' => {
                let count = fields.i16().unwrap_or(0).cast_unsigned();
                if let Some(Awaited::Describe(Some(statement))) = self.awaited.front() {
                    let types: Vec<u32> = (0..count).map_while(|_| fields.u32()).collect();
                    statement.held.borrow_mut().add(4 * types.len());
                    *statement.types.borrow_mut() = types;
                }
            }
            b'T' | b'n' => {
                match self.awaited.front() {
                    Some(Awaited::Describe(Some(statement))) if statement.makes => {
                        let columns = columns_of(message.body);
                        statement.held.borrow_mut().add(columns_bytes(&columns));
                        *statement.columns.borrow_mut() = columns;
                    }
                    Some(Awaited::Query { makes: true, .. }) => self.columns = columns_of(message.body),
                    _ => (),
                }
                if let Some(Awaited::Describe(_)) = self.awaited.front() {
                    self.next();
                }
            }
            b'C' | b'I' | b's' => self.executed(now_ns, message, store),
            b'G' => {
                self.rows.begin();
                if let Some(Awaited::Execute { copies, .. }) = self.awaited.front_mut() {
                    *copies = true;
                }
                self.forget_ignored_syncs();
            }
            b'E' => self.failed(now_ns, state_of(message.body), store),
            b'S' => self.set(&mut fields),
            b'Z' => self.ready(now_ns, message.body.first() == Some(&IDLE), store),
            _ => (),
        }
        self.wants_rows.set(self.answer.wants_more() && self.may_make());
    }

    /// A setting that the server tells its clients of.
    fn set(&mut self, fields: &mut Fields<'_>) {
        if fields.text() == Some(&b"application_name"[..]) {
            self.facts.application = name_of(fields.text().unwrap_or_default());
        }
    }

    /// Whether the answer that comes next may have keys.
    fn may_make(&self) -> bool {
        match self.awaited.front() {
            Some(Awaited::Query { makes, .. }) => *makes,
            Some(Awaited::Execute { portal: Some(portal), .. }) => {
                portal.statement.as_ref().is_some_and(|statement| statement.makes)
            }
            _ => false,
        }
    }

    fn row(&mut self, body: &[u8]) {
        match self.awaited.front() {
            Some(Awaited::Query { .. }) => self.answer.row(body, &self.columns, None),
            Some(Awaited::Execute { portal: Some(portal), .. }) => {
                if let Some(statement) = &portal.statement {
                    self.answer.row(body, &statement.columns.borrow(), Some(&portal.formats));
                }
            }
            _ => (),
        }
    }

    fn next(&mut self) {
        self.awaited.pop_front();
    }

    /// CommandComplete, an empty text, or as many rows as were asked for.
    fn executed(&mut self, now_ns: u64, message: Message<'_>, store: &mut Store) {
        match self.awaited.front() {
            Some(Awaited::Fetch) => {
                store.account.fetches += 1;
                self.next();
            }
            Some(Awaited::Execute { .. }) => {
                let Some(Awaited::Execute { portal, begun_ns, .. }) = self.awaited.pop_front() else { return };
                let ending = Ending::Done(self.took_us(begun_ns, now_ns));
                match portal {
                    Some(portal) => self.over_of(&portal, begun_ns, ending, store),
                    // Of SQL's DECLARE.
                    None => store.account.fetches += 1,
                }
                self.done_ns = now_ns;
            }
            _ => (),
        }
        if message.tag == b'C' {
            self.forget_prepared(message.body);
        }
    }

    /// What DEALLOCATE and DISCARD drop. A name that is dropped and used again is prepared again.
    fn forget_prepared(&mut self, tag: &[u8]) {
        if tag.starts_with(b"DEALLOCATE ALL") || tag.starts_with(b"DISCARD ALL") {
            self.statements.clear();
        } else if tag.starts_with(b"DEALLOCATE")
            && let Some(text) = self.text_in_hand()
        {
            let word = text.trim_end_matches(|letter: char| letter == ';' || letter.is_whitespace());
            let word = word.rsplit(char::is_whitespace).next().unwrap_or_default().trim_matches('"').to_owned();
            self.statements.remove(&word);
        }
    }

    /// The text that is being executed, or was last.
    fn text_in_hand(&self) -> Option<&str> {
        match self.awaited.front() {
            Some(Awaited::Query { text, .. }) => text.as_deref(),
            _ => self.last.as_ref().map(|call| call.text.as_str()),
        }
    }

    /// An error, of what is at the front.
    fn failed(&mut self, now_ns: u64, state: [u8; 5], store: &mut Store) {
        if !self.logged_in {
            return;
        }
        let ending = Ending::Failed(state);
        match self.awaited.front_mut() {
            Some(Awaited::Query { failed, .. }) => {
                failed.get_or_insert(state);
                return;
            }
            // What was done is undone when it commits.
            Some(Awaited::Sync) => {
                match &mut self.last {
                    Some(call) => call.ending = ending,
                    None => store.account.errors_without_statement += 1,
                }
                return;
            }
            Some(Awaited::Function) | None => {
                store.account.errors_without_statement += 1;
                return;
            }
            Some(_) => (),
        }
        self.ignoring = true;
        match self.awaited.pop_front() {
            Some(Awaited::Parse(statement, before)) => {
                self.failed_parse(&statement, now_ns, ending, store);
                match before {
                    Some(before) => self.statements.insert(before.name.clone(), before),
                    None => self.statements.remove(&statement.name),
                };
            }
            Some(Awaited::Bind(portal)) => {
                let begun_ns = self.begun_of(&portal).unwrap_or(now_ns);
                self.over_of(&portal, begun_ns, ending, store);
            }
            Some(Awaited::Execute { portal: Some(portal), begun_ns, .. }) => {
                self.over_of(&portal, begun_ns, ending, store);
            }
            _ => store.account.errors_without_statement += 1,
        }
        self.done_ns = now_ns;
    }

    /// A text that could not be prepared. Its values, if they were sent at the same time, are those of the Bind behind it.
    fn failed_parse(&mut self, statement: &Rc<Statement>, now_ns: u64, ending: Ending, store: &mut Store) {
        let bound = self.of_this_sync().find_map(|one| match one {
            Awaited::Bind(portal) if portal.statement.as_ref().is_some_and(|other| Rc::ptr_eq(other, statement)) => {
                Some(Rc::clone(portal))
            }
            _ => None,
        });
        let begun_ns = bound.as_ref().and_then(|portal| self.begun_of(portal)).unwrap_or(now_ns);
        match bound {
            Some(portal) => self.over_of(&portal, begun_ns, ending, store),
            None => {
                let unknown = statement.text.as_deref().is_some_and(takes_parameters);
                self.keep(statement, Values { unknown, ..Values::default() }, begun_ns, ending, store);
            }
        }
    }

    /// What is awaited up to the next Sync: an error is about nothing behind it, and what is behind it may be long.
    fn of_this_sync(&self) -> impl Iterator<Item = &Awaited> {
        self.awaited.iter().take_while(|one| !matches!(one, Awaited::Sync | Awaited::Query { .. } | Awaited::Function))
    }

    /// When the first message of an execution came that is still awaited.
    fn begun_of(&self, portal: &Rc<Portal>) -> Option<u64> {
        self.of_this_sync().find_map(|one| match one {
            Awaited::Execute { portal: Some(other), begun_ns, .. } if Rc::ptr_eq(other, portal) => Some(*begun_ns),
            _ => None,
        })
    }

    fn over_of(&mut self, portal: &Portal, begun_ns: u64, ending: Ending, store: &mut Store) {
        let (Some(statement), Some(values)) = (&portal.statement, portal.values.take()) else {
            store.account.not_followed += 1;
            return;
        };
        if values.unknown {
            store.account.binary += 1;
        }
        self.keep(statement, values, begun_ns, ending, store);
    }

    fn keep(&mut self, statement: &Statement, values: Values, begun_ns: u64, ending: Ending, store: &mut Store) {
        match call_of(statement, values, store.us_of(begun_ns), ending) {
            Some(call) if store.refuses(&call.text) => (),
            Some(call) => self.over(call, store),
            None => store.account.not_text += 1,
        }
    }

    /// ReadyForQuery: all up to here has been answered.
    fn ready(&mut self, now_ns: u64, idle: bool, store: &mut Store) {
        self.logged_in = true;
        while let Some(one) = self.awaited.pop_front() {
            let is_all = matches!(one, Awaited::Sync | Awaited::Query { .. } | Awaited::Function);
            self.answered_all += u64::from(is_all);
            match one {
                Awaited::Sync => break,
                // A server that skips messages skips these too.
                Awaited::Query { .. } | Awaited::Function if self.ignoring => (),
                Awaited::Query { text, cut, begun_ns, failed, .. } => {
                    let us = self.took_us(begun_ns, now_ns);
                    self.done_ns = now_ns;
                    let ending = failed.map_or(Ending::Done(us), Ending::Failed);
                    self.queried(text, cut, (begun_ns, ending), store);
                    break;
                }
                Awaited::Function => break,
                _ => (),
            }
        }
        self.ignoring = false;
        if self.awaited.is_empty() {
            // What a client sent of a COPY that had failed, and what was answered to no statement that is kept.
            self.rows = Rows::new(&self.ledger);
            self.answer = Answer::default();
        }
        self.write_last(store);
        if idle {
            self.fresh = true;
            let answered = self.answered_all;
            // Those of a later part of a pipeline stay.
            self.portals.retain(|_, portal| portal.asked_before >= answered);
        }
    }

    fn queried(&mut self, text: Option<String>, cut: bool, (begun_ns, ending): (u64, Ending), store: &mut Store) {
        let Some(text) = text else {
            store.account.not_text += 1;
            return;
        };
        if store.refuses(&text) {
            return;
        }
        let call = Call {
            due_us: store.us_of(begun_ns),
            protocol: Protocol::Text,
            name: String::new(),
            text,
            values: Vec::new(),
            transaction: 0,
            ending,
            without_values: false,
            cut,
            rows: None,
            answer: Vec::new(),
        };
        self.over(call, store);
    }

    /// The session is over: what was begun and has no end is kept without one.
    pub(crate) fn give_up(&mut self, store: &mut Store) {
        while let Some(one) = self.awaited.pop_front() {
            match one {
                _ if self.ignoring => (),
                Awaited::Query { text, cut, begun_ns, failed, .. } => {
                    let ending = failed.map_or(Ending::Unknown, Ending::Failed);
                    return self.queried(text, cut, (begun_ns, ending), store);
                }
                Awaited::Execute { portal: Some(portal), begun_ns, .. } => {
                    return self.over_of(&portal, begun_ns, Ending::Unknown, store);
                }
                _ => (),
            }
        }
    }

    /// What an execution took: those of one pipeline follow each other.
    fn took_us(&self, begun_ns: u64, now_ns: u64) -> u64 {
        now_ns.saturating_sub(begun_ns.max(self.done_ns)) / 1000
    }
}

/// The SQLSTATE of an ErrorResponse.
fn state_of(body: &[u8]) -> [u8; 5] {
    let mut fields = Fields::of(body);
    while let Some(code) = fields.byte().filter(|code| *code != 0) {
        let Some(value) = fields.text() else { break };
        if code == b'C' {
            return value.try_into().unwrap_or(UNKNOWN_STATE);
        }
    }
    UNKNOWN_STATE
}
