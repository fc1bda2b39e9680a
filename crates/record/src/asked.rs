//! What the client sends: statements are prepared, get values, are executed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::answer::may_make;
use crate::binary::{self, Room};
use crate::ledger::Held;
use crate::messages::{Fields, Message};
use crate::session::{Awaited, Portal, Session, Statement, Values, values_bytes};
use crate::store::Store;

/// Values of a Bind are text unless its format is this.
const BINARY: i16 = 1;
/// What a statement or a portal takes of memory beside its texts.
const ITSELF_BYTES: usize = 512;

impl Session {
    /// Whether a message of the client is looked at. Passwords are not: they are skipped without being kept.
    pub(crate) fn is_of_use_from_client(tag: u8) -> bool {
        matches!(tag, b'Q' | b'P' | b'B' | b'D' | b'E' | b'C' | b'S' | b'F' | b'd' | b'c' | b'f' | b'X')
    }

    /// Takes a message of the client.
    pub(crate) fn asked(&mut self, now_ns: u64, message: Message<'_>, store: &mut Store) {
        let mut fields = Fields::of(message.body);
        store.account.entries += 1;
        #[cfg(test)]
        assert!(!message.body.starts_with(b"poison"), "a planted bug");
        match message.tag {
            b'd' => self.rows.add(message.body, message.whole, store),
            b'Q' => {
                let text = owned(fields.text().unwrap_or_default());
                self.asks_all();
                let (makes, cut) = (text.as_deref().is_some_and(may_make), !message.whole);
                let _held = Held::new(&self.ledger, text.as_ref().map_or(0, String::len));
                self.awaited.push_back(Awaited::Query { text, cut, begun_ns: now_ns, failed: None, makes, _held });
            }
            b'P' => self.parse(now_ns, &mut fields, message.whole),
            b'B' => self.bind(now_ns, &mut fields, message.whole),
            b'D' => {
                let of_statement = fields.byte() == Some(b'S');
                let name = name(&mut fields);
                let statement = if of_statement {
                    self.statements.get(&name).cloned()
                } else {
                    self.portals.get(&name).and_then(|portal| portal.statement.clone())
                };
                self.awaited.push_back(Awaited::Describe(statement));
            }
            b'E' => self.execute(now_ns, &name(&mut fields)),
            b'C' => {
                let of_statement = fields.byte() == Some(b'S');
                let name = name(&mut fields);
                if of_statement {
                    self.statements.remove(&name);
                } else {
                    self.portals.remove(&name);
                }
                self.awaited.push_back(Awaited::Close);
            }
            b'S' => {
                self.asks_all();
                if self.is_copying() {
                    self.answered_all += 1;
                } else {
                    self.awaited.push_back(Awaited::Sync);
                }
            }
            b'F' => {
                store.account.not_followed += 1;
                self.asks_all();
                self.awaited.push_back(Awaited::Function);
            }
            b'X' => self.left = true,
            // The end of COPY's rows.
            _ => (),
        }
    }

    /// Whether the server waits for rows of COPY; then it ignores a Sync.
    fn is_copying(&self) -> bool {
        matches!(self.awaited.front(), Some(Awaited::Execute { copies: true, .. }))
    }

    fn asks_all(&mut self) {
        self.begun_ns = None;
        self.asked_all += 1;
    }

    /// Those that came before it was known that the server waits for rows.
    pub(crate) fn forget_ignored_syncs(&mut self) {
        if self.is_copying() {
            let before = self.awaited.len();
            self.awaited.retain(|one| !matches!(one, Awaited::Sync));
            self.answered_all += (before - self.awaited.len()) as u64;
        }
    }

    fn parse(&mut self, now_ns: u64, fields: &mut Fields<'_>, whole: bool) {
        self.begun_ns.get_or_insert(now_ns);
        let name = name(fields);
        let text = owned(fields.text().unwrap_or_default());
        let count = fields.i16().unwrap_or(0).cast_unsigned();
        let types: Vec<u32> = (0..count).map_while(|_| fields.u32()).collect();
        let makes = text.as_deref().is_some_and(may_make);
        // The text is copied into the call that is made of it.
        let bytes = 2 * (name.len() + text.as_ref().map_or(0, String::len)) + 4 * types.len() + ITSELF_BYTES;
        let held = RefCell::new(Held::new(&self.ledger, bytes));
        let (types, columns) = (RefCell::new(types), RefCell::default());
        let statement = Rc::new(Statement { name: name.clone(), text, cut: !whole, types, makes, columns, held });
        let before = self.statements.insert(name, Rc::clone(&statement));
        self.awaited.push_back(Awaited::Parse(statement, before));
    }

    fn bind(&mut self, now_ns: u64, fields: &mut Fields<'_>, whole: bool) {
        self.begun_ns.get_or_insert(now_ns);
        let portal = name(fields);
        let statement = self.statements.get(&name(fields)).cloned();
        let values = match (&statement, whole) {
            (Some(statement), true) => {
                values_of(fields, &statement.types.borrow()).unwrap_or(Values { cut: true, ..Values::default() })
            }
            _ => Values { cut: !whole, ..Values::default() },
        };
        // Behind the values, if those were followed.
        let count = if values.cut || values.unknown { 0 } else { fields.i16().unwrap_or(0).cast_unsigned() };
        let formats: Vec<i16> = (0..count).map_while(|_| fields.i16()).collect();
        let bytes = portal.len() + values_bytes(&values.values) + 2 * formats.len() + ITSELF_BYTES;
        let _held = Held::new(&self.ledger, bytes);
        let (values, asked) = (RefCell::new(Some(values)), Cell::new(false));
        let bound = Rc::new(Portal { statement, values, asked, asked_before: self.asked_all, formats, _held });
        self.portals.insert(portal, Rc::clone(&bound));
        self.awaited.push_back(Awaited::Bind(bound));
    }

    fn execute(&mut self, now_ns: u64, portal: &str) {
        let begun_ns = self.begun_ns.take().unwrap_or(now_ns);
        let portal = self.portals.get(portal).cloned();
        let again = portal.as_ref().is_some_and(|portal| portal.asked.replace(true));
        self.awaited.push_back(if again {
            Awaited::Fetch
        } else {
            Awaited::Execute { portal, begun_ns, copies: false }
        });
    }
}

/// Values of a Bind behind its names. None if it is not a message of this protocol.
fn values_of(fields: &mut Fields<'_>, types: &[u32]) -> Option<Values> {
    let formats: Vec<i16> = (0..fields.i16()?.cast_unsigned()).map_while(|_| fields.i16()).collect();
    let count = usize::from(fields.i16()?.cast_unsigned());
    let mut found = Values::default();
    let mut room = Room::of(fields.left());
    for place in 0..count {
        let Ok(length) = usize::try_from(fields.i32()?) else {
            found.values.push(None);
            continue;
        };
        let bytes = fields.bytes(length)?;
        // One format is that of all; none is text.
        let format = if formats.len() == 1 { formats[0] } else { formats.get(place).copied().unwrap_or(0) };
        let text = if format == BINARY {
            binary::text_of(types.get(place).copied().unwrap_or(0), bytes, &mut room)
        } else {
            owned(bytes)
        };
        match text {
            Some(text) => found.values.push(Some(text)),
            None => return Some(Values { unknown: true, ..Values::default() }),
        }
    }
    Some(found)
}

fn owned(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// A name of a statement or a portal: it is told from others, and needs not be text.
fn name(fields: &mut Fields<'_>) -> String {
    String::from_utf8_lossy(fields.text().unwrap_or_default()).into_owned()
}
