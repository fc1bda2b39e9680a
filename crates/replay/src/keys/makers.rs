//! Which statements make keys: INSERT with RETURNING, functions of sequences, and functions of the user's that may write.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::key::Key;

/// What the database says of keys that it gives.
#[derive(Deserialize, Default)]
pub(crate) struct Catalogue {
    /// Columns with a sequence, an identity or a new uuid as their default.
    columns: Vec<KeyColumn>,
    /// Sequences with their last values.
    sequences: Vec<Sequence>,
    /// Functions of the user's that may write.
    functions: Vec<String>,
}

/// A column whose values the server gives.
#[derive(Deserialize, Clone)]
pub(crate) struct KeyColumn {
    table: String,
    column: String,
    kind: Kind,
    /// The sequence's last value; 0 of others.
    #[serde(default)]
    after: u64,
    /// So many of the last values sessions may still have had to give when it was read: a sequence with a cache.
    #[serde(default)]
    cached: u64,
    /// Whether values are given in their order: a sequence without a cache.
    #[serde(default = "yes")]
    in_order: bool,
}

fn yes() -> bool {
    true
}

impl KeyColumn {
    fn wanted(&self) -> Wanted {
        Wanted {
            column: Some(self.column.clone()),
            kind: self.kind,
            after: self.after.saturating_sub(self.cached),
            source: self.source(),
        }
    }

    fn source(&self) -> String {
        format!("{}.{}", self.table, self.column)
    }
}

#[derive(Deserialize)]
struct Sequence {
    name: String,
    after: u64,
    #[serde(default)]
    cached: u64,
}

/// What values are.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Number,
    Uuid,
}

impl Kind {
    /// Whether a key is of this kind.
    pub(crate) fn is_of(self, key: Key) -> bool {
        matches!((self, key), (Self::Number, Key::Number(_)) | (Self::Uuid, Key::Uuid(_)))
    }
}

/// A column of an answer in which new keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its name; none for the first column of this kind.
    pub column: Option<String>,
    pub kind: Kind,
    /// Numbers of it are larger than this.
    pub after: u64,
    /// Table and column, or a function: what makes them one after another.
    pub source: String,
}

impl Wanted {
    /// Whether their keys may be taken for one another's: nothing says which sequence a function takes.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let are_functions = self.column.is_none() && other.column.is_none();
        self.kind == other.kind && (are_functions || self.source == other.source)
    }

    /// The key that a recorded answer has in this column; none where the answer was not recorded.
    pub(crate) fn answered(&self, answer: &[(String, String)]) -> Option<Key> {
        let fits = |key: &Key| matches!((key, self.kind), (Key::Number(_), Kind::Number) | (Key::Uuid(_), Kind::Uuid));
        let is_one = |name: &String| self.column.as_ref().is_none_or(|column| column == name);
        answer.iter().filter(|(name, _)| is_one(name)).filter_map(|(_, value)| Key::of(value)).find(fits)
    }
}

/// Says which keys statements make.
pub(crate) struct Makers {
    tables: HashMap<String, Vec<KeyColumn>>,
    sequences: HashMap<String, u64>,
    functions: HashSet<String>,
    /// No key of any sequence is smaller.
    pub lowest: u64,
    /// The last value of each sequence.
    lasts: Vec<u64>,
    caches: HashMap<String, Cache>,
}

/// How a sequence gives its values to sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cache {
    /// So many of the last values sessions may still have had to give when it was read.
    pub cached: u64,
    /// Whether it gives them in their order.
    pub in_order: bool,
}

impl Makers {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        let mut tables: HashMap<String, Vec<KeyColumn>> = HashMap::new();
        for column in catalogue.columns {
            tables.entry(column.table.clone()).or_default().push(column);
        }
        let cache = |one: &KeyColumn| Cache { cached: one.cached, in_order: one.in_order };
        let caches = tables.values().flatten().map(|one| (one.source(), cache(one))).collect();
        let before = |one: &Sequence| one.after.saturating_sub(one.cached);
        let sequences: HashMap<_, _> = catalogue.sequences.iter().map(|one| (one.name.clone(), before(one))).collect();
        let lasts: Vec<_> = catalogue.sequences.iter().map(before).collect();
        let lowest = lasts.iter().copied().min().unwrap_or(0);
        let functions = catalogue.functions.into_iter().collect();
        Self { tables, sequences, functions, lowest, lasts, caches }
    }

    /// Beyond which value the keys of one source are, of which the `first` and the `last` are known: its sequence's last one. Of a
    /// function, whose sequence nothing names, the nearest below them.
    ///
    /// Where another sequence ended among them, numbers that were there before are theirs too: there it is the lowest of all.
    pub(crate) fn beyond(&self, wanted: &Wanted, first: u64, last: u64) -> u64 {
        let nearest = || self.lasts.iter().copied().filter(|one| *one < first).max();
        let own = if wanted.column.is_none() { nearest().unwrap_or(wanted.after) } else { wanted.after };
        if self.lasts.iter().any(|one| own < *one && *one <= last) { own.min(self.lowest) } else { own }
    }

    /// Whether no statement makes keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.sequences.is_empty() && self.functions.is_empty()
    }

    /// How the sequence of a column gives its values.
    pub(crate) fn cache(&self, source: &str) -> Cache {
        self.caches.get(source).copied().unwrap_or(Cache { cached: 0, in_order: true })
    }

    /// Where new keys are in the answer to a statement; empty of those that make none.
    pub(crate) fn wanted(&self, text: &str) -> Vec<Wanted> {
        let words = words(text);
        match words.first().map(|word| word.to_ascii_lowercase()).as_deref() {
            Some("insert") => self.inserted(&words),
            Some("select") => self.selected(&words),
            _ => Vec::new(),
        }
    }

    /// Columns with a sequence of which a statement takes the next value, whether or not it returns it.
    pub(crate) fn uses(&self, text: &str) -> Vec<Wanted> {
        let words = words(text);
        if !words.first().is_some_and(|word| word.eq_ignore_ascii_case("insert")) {
            return Vec::new();
        }
        self.of_table(&words).iter().filter(|one| one.kind == Kind::Number).map(KeyColumn::wanted).collect()
    }

    /// Whether a statement may take the next value of a sequence that its text does not name: a function of the user's.
    pub(crate) fn takes_unnamed(&self, text: &str) -> bool {
        let words = words(text);
        let is =
            |place: usize, wanted: &str| words.get(place).is_some_and(|word: &&str| word.eq_ignore_ascii_case(wanted));
        is(0, "select") && function(&words).is_some_and(|(name, _)| name == "nextval" || self.functions.contains(&name))
    }

    fn inserted(&self, words: &[&str]) -> Vec<Wanted> {
        let Some(returning) = words.iter().rposition(|word| word.eq_ignore_ascii_case("returning")) else {
            return Vec::new();
        };
        let returned: Vec<String> = words[returning + 1..].iter().map(|word| bare(word)).collect();
        let every = returned.iter().any(|word| word == "*");
        let columns = self.of_table(words).iter().filter(|one| every || returned.contains(&one.column));
        columns.map(KeyColumn::wanted).collect()
    }

    /// The columns of the table in `INSERT INTO schema.table`.
    fn of_table(&self, words: &[&str]) -> &[KeyColumn] {
        let named = words.get(2..).unwrap_or_default().split(|word| *word != "." && !is_name(word)).next();
        let named = named.unwrap_or_default().iter().enumerate();
        let table = named.take_while(|(at, word)| (at % 2 == 1) == (**word == ".")).last();
        table.and_then(|(_, name)| self.tables.get(&bare(name))).map_or(&[], Vec::as_slice)
    }

    fn selected(&self, words: &[&str]) -> Vec<Wanted> {
        let Some((function, argument)) = function(words) else { return Vec::new() };
        let number = |after| Wanted { column: None, kind: Kind::Number, after, source: function.clone() };
        match function.as_str() {
            "currval" | "nextval" | "lastval" => {
                let sequence = argument.trim_matches('\'');
                let name = sequence.rsplit('.').next().unwrap_or(sequence);
                vec![number(self.sequences.get(name).copied().unwrap_or(self.lowest))]
            }
            name if self.functions.contains(name) => {
                vec![number(self.lowest), Wanted { kind: Kind::Uuid, ..number(0) }]
            }
            _ => Vec::new(),
        }
    }
}

/// The function of `SELECT f(…)` and `SELECT * FROM f(…)`, and the word behind its bracket.
fn function(words: &[&str]) -> Option<(String, String)> {
    let lower: Vec<String> = words.iter().take(8).map(|word| bare(word)).collect();
    let begin = if lower.get(1).is_some_and(|word| word == "*") { 3 } else { 1 };
    let open = lower.iter().position(|word| word == "(").filter(|open| *open > begin)?;
    Some((lower[open - 1].clone(), lower.get(open + 1).cloned().unwrap_or_default()))
}

/// A name as the catalogue has it: without quotes, in small letters unless it was quoted.
fn bare(word: &str) -> String {
    word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).map_or_else(|| word.to_lowercase(), str::to_owned)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == '"')
}

/// The words, quoted names, literals and signs of a text.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            _ if first.is_alphanumeric() || first == '_' => {
                rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn makers() -> Makers {
        let catalogue = serde_json::json!({
            "columns": [
                {"table": "orders", "column": "id", "kind": "number", "after": 100},
                {"table": "orders", "column": "ref", "kind": "uuid"},
            ],
            "sequences": [{"name": "orders_id_seq", "after": 100}, {"name": "other", "after": 7}],
            "functions": ["place_order"],
        });
        Makers::new(serde_json::from_value(catalogue).unwrap())
    }

    fn wanted(text: &str) -> Vec<(Option<String>, u64)> {
        makers().wanted(text).into_iter().map(|one| (one.column, one.after)).collect()
    }

    #[test]
    fn an_insert_makes_the_keys_that_it_returns() {
        let (id, reference) = ((Some("id".to_owned()), 100), (Some("ref".to_owned()), 0));
        assert_eq!(
            wanted("INSERT INTO shop.orders (a) VALUES ('x') RETURNING id, ref"),
            [id.clone(), reference.clone()]
        );
        assert_eq!(wanted("insert into \"orders\" values ($1)  returning *"), [id.clone(), reference]);
        assert_eq!(wanted("INSERT INTO orders AS o VALUES ('returning') RETURNING o.id"), [id]);
        assert_eq!(wanted("INSERT INTO orders VALUES (1)"), []);
        assert_eq!(wanted("INSERT INTO lines VALUES (1) RETURNING id"), []);
    }

    #[test]
    fn a_database_without_columns_sequences_and_functions_makes_none() {
        assert!(Makers::new(Catalogue::default()).is_empty() && !makers().is_empty());
        let functions = vec!["place_order".to_owned()];
        assert!(!Makers::new(Catalogue { functions, ..Catalogue::default() }).is_empty());
    }

    #[test]
    fn functions_make_keys() {
        assert_eq!(wanted("SELECT currval('orders_id_seq')"), [(None, 100)]);
        assert_eq!(wanted("SELECT pg_catalog.nextval('shop.orders_id_seq'::regclass)"), [(None, 100)]);
        assert_eq!(wanted("SELECT lastval()"), [(None, 7)]);
        assert_eq!(wanted("SELECT * FROM shop.place_order($1, $2)"), [(None, 7), (None, 0)]);
        assert_eq!(wanted("SELECT count(*) FROM orders"), []);
        assert_eq!(wanted("SELECT 1"), []);
        let takes = |text| makers().takes_unnamed(text);
        assert!(takes("SELECT * FROM shop.place_order($1, $2)") && takes("SELECT nextval('orders_id_seq')"));
        assert!(
            !takes("SELECT currval('orders_id_seq')") && !takes("SELECT 1") && !takes("INSERT INTO orders VALUES (1)")
        );
        for text in ["", "INSERT", "INSERT INTO", "SELECT", "SELECT (", "INSERT INTO RETURNING"] {
            assert_eq!(wanted(text), []);
        }
    }
}
