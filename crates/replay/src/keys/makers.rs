//! Which statements make keys: INSERT with RETURNING, functions of sequences, and functions of the user's that may write.
//!
//! What a statement inserts and returns is read from its syntax tree; where it cannot be parsed, from its words.

use super::catalogue::{Columns, Database, Kind};
use super::key::{Family, Value};
use super::scope::Origin;

/// A column of an answer in which new keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its name in the answer; none for the first column of this kind.
    pub column: Option<String>,
    pub kind: Kind,
    /// The sequence whose keys they are; none of uuids, and where nothing says which sequence a function takes.
    pub family: Option<Family>,
    /// Table and column, or a function: what they are called.
    pub source: String,
}

impl Wanted {
    /// The value that a recorded answer has in this column; none where the answer was not recorded.
    pub(crate) fn answered(&self, answer: &[(String, String)]) -> Option<Value> {
        let is_one = |name: &String| self.column.as_ref().is_none_or(|column| column == name);
        answer
            .iter()
            .filter(|(name, _)| is_one(name))
            .filter_map(|(_, value)| Value::of(value))
            .find(|value| matches!((value, self.kind), (Value::Number(_), Kind::Number) | (Value::Uuid(_), Kind::Uuid)))
    }
}

/// What a statement makes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Makes {
    /// Where new keys are in its answer; empty of those that make none.
    pub wanted: Vec<Wanted>,
    /// Sequences of which it takes the next value, whether or not it returns it.
    pub uses: Vec<Family>,
    /// Whether it may take the next value of a sequence that its text does not name.
    pub takes_unnamed: bool,
}

/// What a parsed statement makes, which inserts into these tables, with these columns given, and answers with these columns.
pub(crate) fn of_parsed(
    columns: &Columns,
    inserted: &[(usize, Vec<u32>)],
    outputs: &[(String, Origin)],
    (text, database, catalogue): (&str, usize, &Database),
) -> Makes {
    let mut found = Makes::default();
    for (table, given) in inserted {
        for (column, spec, family) in columns.makers(*table).iter().filter(|(column, ..)| !given.contains(column)) {
            found.uses.extend(*family);
            for (name, _) in outputs.iter().filter(|(_, origin)| *origin == Origin::Column(*column)) {
                let source = columns.label(*column);
                found.wanted.push(Wanted { column: Some(name.clone()), kind: spec.kind, family: *family, source });
            }
        }
    }
    if inserted.is_empty() {
        (found.wanted, found.takes_unnamed) = selected(columns, &words(text), (database, catalogue));
    }
    found
}

/// What a statement makes that could not be parsed.
pub(crate) fn of_words(columns: &mut Columns, text: &str, database: usize, catalogue: &Database) -> Makes {
    let words = words(text);
    let is_insert = words.first().is_some_and(|word| word.eq_ignore_ascii_case("insert"));
    if !is_insert {
        let (wanted, takes_unnamed) = selected(columns, &words, (database, catalogue));
        return Makes { wanted, uses: Vec::new(), takes_unnamed };
    }
    let Some((schema, table)) = table_of(&words) else { return Makes::default() };
    let table = columns.find(database, schema.as_deref(), &table);
    let returning = words.iter().rposition(|word| word.eq_ignore_ascii_case("returning"));
    let returned: Vec<String> =
        returning.map_or_else(Vec::new, |at| words[at + 1..].iter().map(|word| bare(word)).collect());
    let every = returned.iter().any(|word| word == "*");
    let mut found = Makes::default();
    for (column, spec, family) in columns.makers(table) {
        found.uses.extend(*family);
        if every || returned.contains(&spec.column) {
            let source = columns.label(*column);
            let column = Some(spec.column.clone());
            found.wanted.push(Wanted { column, kind: spec.kind, family: *family, source });
        }
    }
    found
}

/// Schema and table in `INSERT INTO schema.table`.
fn table_of(words: &[&str]) -> Option<(Option<String>, String)> {
    let named = words.get(2..).unwrap_or_default().split(|word| *word != "." && !is_name(word)).next()?;
    let named = named.iter().enumerate().take_while(|(at, word)| (at % 2 == 1) == (**word == "."));
    let names: Vec<String> = named.filter(|(at, _)| at % 2 == 0).map(|(_, name)| bare(name)).collect();
    let (table, schemas) = names.split_last()?;
    Some((schemas.last().cloned(), table.clone()))
}

/// What a SELECT of a function makes, and whether it takes a value of a sequence that it does not name.
fn selected(columns: &Columns, words: &[&str], (database, catalogue): (usize, &Database)) -> (Vec<Wanted>, bool) {
    let none = (Vec::new(), false);
    if !words.first().is_some_and(|word| word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("call")) {
        return none;
    }
    let Some((function, argument)) = function(words) else { return none };
    let wanted = |kind, family| Wanted { column: None, kind, family, source: function.clone() };
    match function.as_str() {
        "currval" | "nextval" | "lastval" => {
            let sequence = argument.trim_matches('\'');
            let name = bare(sequence.rsplit('.').next().unwrap_or(sequence));
            let family = columns.sequence_named(database, &name);
            (vec![wanted(Kind::Number, family)], function == "nextval")
        }
        name if catalogue.functions.contains(name) => {
            (vec![wanted(Kind::Number, None), wanted(Kind::Uuid, None)], true)
        }
        _ => none,
    }
}

/// The function of `SELECT f(…)`, `SELECT * FROM f(…)` and `CALL f(…)`, and the word behind its bracket.
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
