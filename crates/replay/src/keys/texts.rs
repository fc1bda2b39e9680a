//! The statements of a capture by their texts: what stands at each of their places, and what they make.
//!
//! A text is parsed once, whatever values it is sent with. Places of which the statements and the catalogue say the same thing are one *group*: the values of a class of columns, an
//! argument of a function, or one place alone. Each group is decided as a whole ([`super::decide`]).

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use pgdyno_capture::{Call, Protocol, shape};

use super::catalogue::{Catalogue, ColumnId, Columns, Database};
use super::decide::{Decision, Group};
use super::key::{Family, Slot};
use super::literals::literals;
use super::makers::{self, Makes};
use super::parse::{self, Parsed};
use super::roles::{Reader, Role};
use super::scope::Origin;

/// Texts that are read; an application has some hundred, and one that writes lists of all lengths has thousands.
const TEXTS_MAX: usize = 20_000;
const NOT_PARSED: &str = "the statement could not be read";
const NO_ROLE: &str = "nothing around it says what it is";
const TOO_MANY: &str = "the capture has too many different statements";

/// What is the same wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A number that is no key.
    Plain,
    /// A value of this column, which stands for its class.
    Class(ColumnId),
    /// An argument of a function, by its place from 0.
    Argument(usize, String, usize),
    /// A place of one text alone.
    Alone(usize, Slot, &'static str),
    /// A place of one of the texts that were too many.
    Others,
}

/// A text of the capture.
pub(crate) struct Text {
    /// Without its literals.
    pub shape: String,
    database: usize,
    pub makes: Makes,
    /// Of each place what the statement says of it.
    roles: Vec<(Slot, Vec<Role>)>,
    /// Places where the application gives a key column its value itself.
    gives: Vec<Slot>,
    is_parsed: bool,
    /// Of each parameter and each literal the group, once that is settled.
    parameters: Vec<Group>,
    literals: Vec<Group>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Texts {
    databases: Vec<Database>,
    pub columns: Columns,
    by_digest: HashMap<u64, usize>,
    texts: Vec<Text>,
    by_subject: HashMap<Subject, Group>,
    subjects: Vec<Subject>,
    /// The group of places in texts that were not read.
    others: Group,
    pub decisions: Vec<Decision>,
}

/// What a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub group: Group,
    /// Whether the application gives the key its value there.
    pub gives: bool,
}

impl Texts {
    pub(crate) fn new(mut catalogue: Catalogue) -> Self {
        let mut columns = Columns::new(&catalogue);
        for database in &mut catalogue.databases {
            // Names that a statement has in small letters are found as they are; others are rare.
            let more: Vec<String> = database.functions.iter().cloned().collect();
            database.own_functions.extend(more);
        }
        views(&mut columns, &catalogue.databases);
        Self { databases: catalogue.databases, columns, ..Self::default() }
    }

    /// The number of a database, by its name; of one that the catalogue does not have, the first.
    pub(crate) fn database(&self, name: &str) -> usize {
        self.databases.iter().position(|one| one.name == name).unwrap_or(0)
    }

    /// Whether no statement makes keys.
    pub(crate) fn make_none(&self) -> bool {
        self.columns.is_empty() && self.databases.iter().all(|one| one.functions.is_empty())
    }

    /// Reads the text of a call, unless it is known. This recurses: see [`parse::on_deep_stack`].
    pub(crate) fn read(&mut self, call: &Call, database: usize) {
        let digest = digest(call, database);
        if self.by_digest.contains_key(&digest) || self.texts.len() >= TEXTS_MAX {
            return;
        }
        self.by_digest.insert(digest, self.texts.len());
        let text = self.text(call, database);
        self.texts.push(text);
    }

    fn text(&mut self, call: &Call, database: usize) -> Text {
        let none = Database::default();
        let catalogue = self.databases.get(database).unwrap_or(&none);
        let mut text = Text {
            shape: shape(&call.text),
            database,
            makes: Makes::default(),
            roles: Vec::new(),
            gives: Vec::new(),
            is_parsed: false,
            parameters: vec![0; call.values.len()],
            literals: Vec::new(),
        };
        let mut places = Vec::new();
        if call.protocol == Protocol::Text {
            literals(&call.text, |place| places.push(place));
        }
        text.literals = vec![0; places.len()];
        match parse::parse(&call.text) {
            Some(parsed) => {
                text.is_parsed = parsed.statements.iter().all(Option::is_some);
                read_parsed(&mut text, &mut self.columns, (&call.text, &parsed, &places), catalogue);
            }
            None => text.makes = makers::of_words(&mut self.columns, &call.text, database, catalogue),
        }
        text
    }

    /// All texts were read: gives each place its group. Again after a name has turned out not to tell the truth.
    pub(crate) fn settle(&mut self) {
        self.by_subject.clear();
        self.subjects.clear();
        let plain = self.group(Subject::Plain);
        debug_assert_eq!(plain, 0);
        let mut texts = std::mem::take(&mut self.texts);
        for (number, text) in texts.iter_mut().enumerate() {
            let why = if text.is_parsed { NO_ROLE } else { NOT_PARSED };
            for at in 0..text.parameters.len() {
                text.parameters[at] = self.group(Subject::Alone(number, Slot::Parameter(at), why));
            }
            for at in 0..text.literals.len() {
                text.literals[at] = self.group(Subject::Alone(number, Slot::Literal(at), why));
            }
            for (slot, roles) in &text.roles {
                let role = roles.iter().cloned().fold(Role::Neutral, |one, other| one.and(other, &self.columns));
                let subject = match role {
                    Role::Neutral | Role::Plain => Subject::Plain,
                    Role::Column(column) if self.columns.is_plain(column) => Subject::Plain,
                    Role::Column(column) => Subject::Class(self.columns.class(column)),
                    Role::Argument(name, at) => Subject::Argument(text.database, name, at),
                    Role::Open(why) => Subject::Alone(number, *slot, why),
                };
                let group = self.group(subject);
                let place = match slot {
                    Slot::Parameter(at) => text.parameters.get_mut(*at),
                    Slot::Literal(at) => text.literals.get_mut(*at),
                };
                if let Some(place) = place {
                    *place = group;
                }
            }
        }
        self.texts = texts;
        self.others = self.group(Subject::Others);
        self.decisions = self
            .subjects
            .iter()
            .map(|subject| match subject {
                Subject::Plain => Decision::Plain,
                Subject::Class(class) if !self.columns.families(*class).is_empty() => {
                    Decision::Keys(self.columns.families(*class).to_vec())
                }
                _ => Decision::Undecided,
            })
            .collect();
    }

    fn group(&mut self, subject: Subject) -> Group {
        let next = self.subjects.len();
        *self.by_subject.entry(subject.clone()).or_insert_with(|| {
            self.subjects.push(subject);
            next
        })
    }

    /// The text of a call; none if it was not read.
    pub(crate) fn of(&self, call: &Call, database: usize) -> Option<&Text> {
        self.by_digest.get(&digest(call, database)).map(|number| &self.texts[*number])
    }

    /// What is at a place of a text.
    pub(crate) fn at(&self, text: Option<&Text>, slot: Slot) -> At {
        let Some(text) = text else { return At { group: self.others, gives: false } };
        let group = match slot {
            Slot::Parameter(at) => text.parameters.get(at),
            Slot::Literal(at) => text.literals.get(at),
        };
        At { group: group.copied().unwrap_or(self.others), gives: text.gives.contains(&slot) }
    }

    pub(crate) fn decision(&self, group: Group) -> &Decision {
        &self.decisions[group]
    }

    /// Why the places of a group are not decided by what their statements say.
    pub(crate) fn why(&self, group: Group) -> &'static str {
        match &self.subjects[group] {
            Subject::Plain => "",
            Subject::Class(_) => "no sequence and no foreign key says whether the column holds keys",
            Subject::Argument(..) => "it is an argument of a function",
            Subject::Alone(.., why) => why,
            Subject::Others => TOO_MANY,
        }
    }

    /// The column that a group has the values of.
    pub(crate) fn label(&self, group: Group) -> Option<String> {
        match &self.subjects[group] {
            Subject::Class(column) => Some(self.columns.label(*column)),
            _ => None,
        }
    }

    /// The class of columns that a group has the values of.
    pub(crate) fn class(&self, group: Group) -> Option<ColumnId> {
        if let Subject::Class(column) = self.subjects[group] { Some(column) } else { None }
    }

    /// The database of a group's places; none where they are of several.
    pub(crate) fn database_of(&self, group: Group) -> Option<usize> {
        match &self.subjects[group] {
            Subject::Class(column) => Some(self.columns.database_of(*column)),
            Subject::Argument(database, ..) => Some(*database),
            Subject::Alone(text, ..) => Some(self.texts[*text].database),
            Subject::Plain | Subject::Others => None,
        }
    }

    /// Whether a sequence is of a database.
    pub(crate) fn shares_database(&self, one: Family, other: usize) -> bool {
        self.columns.sequence(one).database == other
    }
}

/// Notes what the statements of a text say of its places.
fn read_parsed(
    text: &mut Text,
    columns: &mut Columns,
    (written, parsed, places): (&str, &Parsed, &[Range<usize>]),
    catalogue: &Database,
) {
    let own = |name: &str| catalogue.own_functions.contains(name);
    let mut reader = Reader::new(columns, text.database, &own, (written, parsed, places));
    reader.statements();
    let Reader { roles, inserted, outputs, .. } = reader;
    text.gives = roles
        .iter()
        .filter(|(_, roles)| {
            roles.iter().any(|role| {
                let Role::Column(column) = role else { return false };
                inserted.iter().any(|(table, given)| {
                    given.contains(column) && columns.makers(*table).iter().any(|(own, ..)| own == column)
                })
            })
        })
        .map(|(slot, _)| *slot)
        .collect();
    text.roles = roles.into_iter().collect();
    text.makes = if text.is_parsed {
        makers::of_parsed(columns, &inserted, &outputs, (written, text.database, catalogue))
    } else {
        makers::of_words(columns, written, text.database, catalogue)
    };
}

/// Columns of views are those that they select.
fn views(columns: &mut Columns, databases: &[Database]) {
    let views = std::mem::take(&mut columns.views);
    let read = parse::on_deep_stack(|| {
        for (database, table, definition) in &views {
            let Some(parsed) = parse::parse(definition) else { continue };
            let own = |name: &str| databases[*database].own_functions.contains(name);
            let mut reader = Reader::new(columns, *database, &own, (definition, &parsed, &[]));
            reader.statements();
            let outputs = std::mem::take(&mut reader.outputs);
            let own: Vec<ColumnId> = columns.tables[*table].columns.iter().map(|(_, id)| *id).collect();
            for (column, (_, origin)) in own.into_iter().zip(outputs) {
                if let Origin::Column(other) = origin {
                    columns.compared(column, other);
                }
            }
        }
    });
    // Without a thread for it views stay what they are: columns of which nothing is known.
    drop(read);
}

/// What the calls of one text have in common: all but their values.
fn digest(call: &Call, database: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (database, call.protocol == Protocol::Text, call.values.len()).hash(&mut hasher);
    // The literal of these says which sequence they take.
    let is_of_sequence = call.text.as_bytes().windows(4).any(|four| four.eq_ignore_ascii_case(b"val("));
    if call.protocol == Protocol::Text && !is_of_sequence {
        let mut end = 0;
        literals(&call.text, |place| {
            call.text.as_bytes()[end..place.start].hash(&mut hasher);
            end = place.end;
        });
        call.text.as_bytes()[end..].hash(&mut hasher);
    } else {
        call.text.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Ending;
    use serde_json::json;

    use super::*;
    use crate::testing::call;

    /// Customers, their orders with lines, products without a sequence, notes that nothing refers to.
    pub(crate) fn catalogue() -> Catalogue {
        let table =
            |name: &str, columns: &[(&str, &str)]| json!({"schema": "public", "name": name, "columns": columns});
        let key = |table: &str, sequence: &str| json!({"schema": "public", "table": table, "column": "id", "kind": "number", "sequence": sequence});
        let refers =
            |table: &str, column: &str, to: &str| json!([["public", table, column], ["public", to, "id"], true]);
        serde_json::from_value(json!({"databases": [{
            "name": "shop",
            "tables": [
                table("customers", &[("id", "number"), ("name", "text")]),
                table("orders", &[("id", "number"), ("customer_id", "number"), ("quantity", "number"), ("due", "other")]),
                table("lines", &[("order_id", "number"), ("number", "number"), ("product", "number"), ("body", "json")]),
                table("products", &[("id", "number"), ("price", "number"), ("stock", "number")]),
                table("notes", &[("customer_id", "number"), ("about", "number")]),
            ],
            "columns": [key("customers", "c"), key("orders", "o")],
            "sequences": [
                {"qualified": "c", "name": "customers_id_seq", "after": 10},
                {"qualified": "o", "name": "orders_id_seq", "after": 20},
            ],
            "same": [
                refers("orders", "customer_id", "customers"),
                refers("lines", "order_id", "orders"),
                refers("lines", "product", "products"),
            ],
            "primary": [["public", "products", "id"], ["public", "orders", "id"]],
            "functions": ["place"],
            "own_functions": ["place", "price_of"],
        }]}))
        .unwrap()
    }

    /// What each place of a text is, after these other texts.
    fn places_after(others: &[&str], text: &str) -> Vec<String> {
        let mut texts = Texts::new(catalogue());
        let sent = |text: &str| {
            let parameters = (1..9).filter(|at| text.contains(&format!("${at}"))).count();
            Call { values: vec![Some("7".to_owned()); parameters], ..call(text, Ending::Done(1)) }
        };
        others.iter().for_each(|other| texts.read(&sent(other), 0));
        let call = sent(text);
        texts.read(&call, 0);
        texts.columns.join_by_name();
        texts.settle();
        let known = texts.of(&call, 0).unwrap();
        known
            .parameters
            .iter()
            .chain(&known.literals)
            .map(|group| match (texts.decision(*group), &texts.subjects[*group]) {
                (Decision::Plain, _) => "plain".to_owned(),
                (Decision::Keys(families), _) => {
                    let names = families.iter().map(|family| texts.columns.sequence(*family).label.clone());
                    names.collect::<Vec<_>>().join(" or ")
                }
                (_, Subject::Class(column)) => format!("open {}", texts.columns.label(*column)),
                (_, Subject::Argument(_, name, at)) => format!("{name} {at}"),
                _ => "open".to_owned(),
            })
            .collect()
    }

    fn places(text: &str) -> Vec<String> {
        places_after(&[], text)
    }

    const CUSTOMER: &str = "customers.id";
    const ORDER: &str = "orders.id";
    const PLAIN: &str = "plain";
    const OPEN: &str = "open";
    const QUANTITY: &str = "open orders.quantity";

    #[test]
    fn a_value_is_of_the_column_that_it_is_compared_with() {
        assert_eq!(places("SELECT * FROM orders WHERE id = 7"), [ORDER]);
        assert_eq!(places("SELECT * FROM orders o WHERE $1 = o.customer_id AND o.quantity > $2"), [CUSTOMER, QUANTITY]);
        assert_eq!(
            places("select 1 from public.orders where ID in (5, 6) or \"id\" = any($1)"),
            [ORDER, PLAIN, ORDER, ORDER]
        );
        assert_eq!(places("DELETE FROM orders USING customers c WHERE c.id = customer_id AND c.id = 7"), [CUSTOMER]);
        assert_eq!(
            places("SELECT * FROM orders WHERE id BETWEEN 5 AND 9 ORDER BY 1 LIMIT 10 OFFSET $1"),
            [PLAIN, ORDER, ORDER, PLAIN, PLAIN]
        );
        assert_eq!(places("SELECT * FROM orders WHERE (id, customer_id) > (5, 6)"), [ORDER, CUSTOMER]);
        assert_eq!(places("SELECT * FROM orders WHERE id::text = '5' AND id = $1::bigint"), [ORDER, ORDER]);
    }

    #[test]
    fn a_value_is_of_the_column_that_it_is_put_into() {
        assert_eq!(
            places("INSERT INTO orders (quantity, customer_id) VALUES ($1, $2), (3, 4)"),
            [QUANTITY, CUSTOMER, QUANTITY, CUSTOMER]
        );
        assert_eq!(places("INSERT INTO lines VALUES (5, 1, 2)"), [ORDER, "open lines.number", PLAIN]);
        assert_eq!(
            places("INSERT INTO lines (order_id, number) SELECT $1, 3 UNION ALL SELECT 4, $2"),
            [ORDER, "open lines.number", "open lines.number", ORDER]
        );
        assert_eq!(
            places("UPDATE orders SET customer_id = $1, quantity = 5 WHERE id = $2"),
            [CUSTOMER, ORDER, QUANTITY]
        );
        assert_eq!(places("UPDATE orders SET (customer_id, quantity) = (5, 6)"), [CUSTOMER, QUANTITY]);
        let upsert = "INSERT INTO orders AS o (id, quantity) VALUES (5, 6) ON CONFLICT (id) DO UPDATE SET customer_id = 7 WHERE o.id = 8";
        assert_eq!(places(upsert), [ORDER, QUANTITY, CUSTOMER, ORDER]);
        assert_eq!(places("INSERT INTO orders (customer_id) VALUES (coalesce($1, 5))"), [CUSTOMER, CUSTOMER]);
    }

    #[test]
    fn what_is_calculated_limited_or_dated_is_no_key() {
        assert_eq!(places("UPDATE products SET stock = stock - $1 WHERE price * 2 > 5"), [PLAIN, PLAIN, OPEN]);
        assert_eq!(
            places("UPDATE orders SET due = '2026', quantity = -5 WHERE due > now() - interval '7'"),
            [PLAIN, PLAIN, PLAIN]
        );
        assert_eq!(
            places("SELECT count(*), 5 FROM orders HAVING count(*) > 7 FETCH FIRST 9 ROWS ONLY"),
            [PLAIN, PLAIN, PLAIN]
        );
        assert_eq!(places("ALTER TABLE orders ADD COLUMN q int DEFAULT 4"), [PLAIN]);
        assert_eq!(places("CREATE TABLE x (a numeric(10, 2) DEFAULT 5, b varchar(20))"), [PLAIN; 4]);
        assert_eq!(places("SELECT substr(name, 5, 7), round(8, 2) FROM customers"), [PLAIN; 4]);
        assert_eq!(places("SET statement_timeout = 5000"), [PLAIN]);
    }

    #[test]
    fn a_column_that_is_calculated_with_anywhere_holds_no_keys() {
        assert_eq!(places("INSERT INTO products (id, stock) VALUES (5, 6)"), [PLAIN, "open products.stock"]);
        let others = ["UPDATE products SET stock = stock - 1", "SELECT sum(quantity) FROM orders"];
        assert_eq!(places_after(&others, "INSERT INTO products (id, stock) VALUES (5, 6)"), [PLAIN, PLAIN]);
        assert_eq!(places_after(&others, "UPDATE orders SET quantity = $1 WHERE id = 5"), [PLAIN, ORDER]);
        // A key that a number is added to is a key all the same.
        assert_eq!(places_after(&["SELECT sum(id) FROM orders"], "SELECT 1 FROM orders WHERE id = 5"), [PLAIN, ORDER]);
    }

    #[test]
    fn joins_and_names_say_what_no_foreign_key_says() {
        let by_name = "SELECT * FROM notes WHERE customer_id = 5 AND about = 6";
        assert_eq!(places(by_name), [CUSTOMER, "open notes.about"]);
        let joined = ["SELECT * FROM notes n JOIN orders o ON o.id = n.about"];
        assert_eq!(places_after(&joined, by_name), [CUSTOMER, ORDER]);
        let within = ["SELECT * FROM orders WHERE id IN (SELECT about FROM notes)"];
        assert_eq!(places_after(&within, by_name), [CUSTOMER, ORDER]);
        let copied = ["INSERT INTO notes (about) SELECT id FROM orders"];
        assert_eq!(places_after(&copied, by_name), [CUSTOMER, ORDER]);
    }

    #[test]
    fn columns_are_found_through_queries_within() {
        assert_eq!(places("SELECT * FROM (SELECT id AS nr FROM orders) x WHERE x.nr = 5"), [ORDER]);
        assert_eq!(places("WITH x AS (SELECT max(id) AS nr FROM orders) SELECT nr FROM x WHERE nr < $1"), [ORDER]);
        assert_eq!(
            places(
                "SELECT 1 FROM orders o WHERE EXISTS (SELECT FROM lines l WHERE l.order_id = o.id AND o.customer_id = 5)"
            ),
            [PLAIN, CUSTOMER]
        );
        assert_eq!(
            places("UPDATE orders SET quantity = v.q FROM (VALUES (5, 6)) v (id, q) WHERE orders.id = v.id"),
            [ORDER, QUANTITY]
        );
        assert_eq!(
            places("SELECT 1 FROM orders JOIN unnest($1::bigint[]) AS x (id) ON x.id = orders.id"),
            [ORDER, PLAIN]
        );
        assert_eq!(
            places("SELECT * FROM orders JOIN lines ON lines.order_id = orders.id WHERE order_id = 5 AND product = 6"),
            [ORDER, PLAIN]
        );
    }

    #[test]
    fn what_nothing_says_is_open() {
        assert_eq!(places("SELECT place(5, $1)"), ["place 1", "place 0"]);
        assert_eq!(places("CALL place(5)"), ["place 0"]);
        assert_eq!(places("INSERT INTO lines (body) VALUES ('{\"order\": 5}')"), [OPEN]);
        assert_eq!(places("SELECT * FROM orders WHERE id + 1 = 5 AND quantity % 3 = 4"), [PLAIN, OPEN, PLAIN, OPEN]);
        assert_eq!(places("SET app.customer = '5'"), [OPEN]);
        assert_eq!(places("SELECT pg_advisory_xact_lock(5)"), [OPEN]);
        assert_eq!(places("SELECT * FROM orders WHERE id = = 5"), [OPEN]);
        assert_eq!(places("EXECUTE q (5)"), ["EXECUTE q 0"]);
        assert_eq!(places("SELECT FROM orders WHERE id = ANY (string_to_array($1, ',')::int[])"), [OPEN, OPEN]);
        assert_eq!(places("SELECT FROM orders WHERE abs(id) = 5 AND id = int8($1)"), [ORDER, OPEN]);
        assert_eq!(places("SELECT 1 FROM orders WHERE id = $1 LIMIT $1"), [OPEN, PLAIN]);
    }

    #[test]
    fn several_statements_of_a_text_are_read_each() {
        let text = "BEGIN; UPDATE orders SET quantity = 5 WHERE id = 6; INSERT INTO lines VALUES (7, 8); -- 'é'\n SELECT 'ü', 9";
        assert_eq!(places(text), [QUANTITY, ORDER, ORDER, "open lines.number", PLAIN, PLAIN]);
    }

    fn makes(text: &str) -> Vec<(Option<String>, String)> {
        let mut texts = Texts::new(catalogue());
        let call = call(text, Ending::Done(1));
        texts.read(&call, 0);
        texts.settle();
        let makes = &texts.of(&call, 0).unwrap().makes;
        makes.wanted.iter().map(|one| (one.column.clone(), one.source.clone())).collect()
    }

    #[test]
    fn an_insert_makes_the_keys_that_it_returns_by_whatever_name() {
        let made = |name: &str| [(Some(name.to_owned()), ORDER.to_owned())];
        assert_eq!(makes("INSERT INTO public.orders (quantity) VALUES (5) RETURNING id"), made("id"));
        assert_eq!(makes("INSERT INTO orders AS o (quantity) VALUES (5) RETURNING o.id AS number"), made("number"));
        assert_eq!(makes("insert into \"orders\" values (default, 5) returning *"), made("id"));
        assert_eq!(
            makes("WITH x AS (INSERT INTO orders (quantity) VALUES (1) RETURNING id AS nr) SELECT nr AS n FROM x"),
            made("n")
        );
        assert_eq!(makes("INSERT INTO orders (id) VALUES (5) RETURNING id"), [], "the application gave it");
        assert_eq!(makes("INSERT INTO orders (quantity) VALUES (5)"), []);
        assert_eq!(makes("INSERT INTO lines VALUES (1) RETURNING order_id"), []);
        // What cannot be parsed is read by its words.
        assert_eq!(makes("INSERT INTO public.orders (quantity) VALUES (5 = = 6) RETURNING id"), made("id"));
    }

    #[test]
    fn functions_make_keys() {
        let sources = |text: &str| makes(text).into_iter().map(|(_, source)| source).collect::<Vec<_>>();
        assert_eq!(sources("SELECT currval('orders_id_seq')"), ["currval"]);
        assert_eq!(sources("SELECT * FROM public.place($1, $2)"), ["place", "place"]);
        assert_eq!(sources("SELECT price_of(5)"), Vec::<String>::new());
        assert_eq!(sources("SELECT count(*) FROM orders"), Vec::<String>::new());
    }
}
