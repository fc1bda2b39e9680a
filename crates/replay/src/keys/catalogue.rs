//! What the databases say of keys: which columns hold keys of which sequence, and of which nothing is known.
//!
//! Columns are one *class* where the catalogue says that they hold the same keys: by a foreign key, as a column of a table and of its partition or of a view on it. Joins of
//! the capture add to it (`roles`), and so do names: `order_id` is a column of `orders.id`, if nothing contradicts it.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::key::{Family, Value};

/// What the databases say of the keys that they give.
#[derive(Deserialize, Default)]
pub(crate) struct Catalogue {
    #[serde(default)]
    pub databases: Vec<Database>,
}

/// One of them.
#[derive(Deserialize, Default)]
pub(crate) struct Database {
    #[serde(default)]
    pub name: String,
    /// Tables, views and their columns.
    #[serde(default)]
    tables: Vec<TableSpec>,
    /// Columns with a sequence, an identity or a new uuid as their default.
    columns: Vec<KeyColumn>,
    /// Sequences with their last values.
    sequences: Vec<SequenceSpec>,
    /// Functions of the user's that may write.
    pub functions: HashSet<String>,
    /// All functions of the user's.
    #[serde(default)]
    pub own_functions: HashSet<String>,
    /// Columns that hold the same values, and whether the one refers to the other: by foreign keys; and those of partitions.
    #[serde(default)]
    same: Vec<(Named, Named, bool)>,
    /// Columns that alone are the primary key of their table.
    #[serde(default)]
    primary: Vec<Named>,
}

/// Schema, table, column.
type Named = (String, String, String);

#[derive(Deserialize)]
struct TableSpec {
    schema: String,
    name: String,
    columns: Vec<(String, Type)>,
    /// Of a view.
    #[serde(default)]
    definition: String,
}

/// What values a column has.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Type {
    /// Whole numbers, or arrays of them.
    Number,
    Text,
    Uuid,
    /// Text with a structure, in which there may be keys.
    Json,
    /// Dates, fractions, truth values: never keys.
    Other,
}

/// A column whose values the server gives.
#[derive(Deserialize, Clone)]
pub(crate) struct KeyColumn {
    #[serde(default)]
    schema: String,
    table: String,
    pub column: String,
    pub kind: Kind,
    /// The whole name of its sequence; empty of others.
    #[serde(default)]
    sequence: String,
}

#[derive(Deserialize)]
struct SequenceSpec {
    /// With its schema, as in [`KeyColumn::sequence`].
    #[serde(default)]
    qualified: String,
    name: String,
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

/// What values are.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Number,
    Uuid,
}

impl Kind {
    /// Whether a value is of this kind.
    pub(crate) fn is_of(self, value: Value) -> bool {
        matches!((self, value), (Self::Number, Value::Number(_)) | (Self::Uuid, Value::Uuid(_)))
    }
}

/// A sequence, whose values are the keys of one family.
pub(crate) struct Sequence {
    pub database: usize,
    pub name: String,
    /// Table and column that it feeds, or its own name.
    pub label: String,
    /// Its keys are larger: its last value in the database, without those that sessions may still have had.
    pub after: u64,
    pub cached: u64,
    pub in_order: bool,
    /// Whether a column has it as its default.
    is_owned: bool,
}

pub(crate) type ColumnId = u32;
pub(crate) type TableId = usize;

/// A table or view, of the catalogue or only of the capture.
pub(crate) struct Table {
    database: usize,
    schema: String,
    pub name: String,
    /// Their names, in the order of the table.
    pub columns: Vec<(String, ColumnId)>,
    /// A table that the database does not have: one that is temporary, or made while the capture lasts.
    pub is_unknown: bool,
}

struct Column {
    table: TableId,
    name: String,
    kind: Type,
    /// Union-find: another column of its class, or itself.
    same: ColumnId,
    families: Vec<Family>,
    /// Whether the catalogue says that it refers to another column.
    refers: bool,
    /// Whether it is the primary key of its table: its values are keys, but of no sequence unless the catalogue names one.
    is_primary: bool,
    /// Whether it is calculated with: a sum, a balance.
    is_quantity: bool,
    /// Whether its class was joined by name alone.
    by_name: bool,
}

/// Tables, columns and their classes, of all databases.
#[derive(Default)]
pub(crate) struct Columns {
    pub tables: Vec<Table>,
    by_name: HashMap<(usize, String), Vec<TableId>>,
    columns: Vec<Column>,
    pub sequences: Vec<Sequence>,
    /// Databases where a sequence is no column's default: triggers or the application take its values.
    loose: HashSet<usize>,
    /// Key columns of each table.
    makers: HashMap<TableId, Vec<(ColumnId, KeyColumn, Option<Family>)>>,
    pub views: Vec<(usize, TableId, String)>,
}

impl Columns {
    /// Those of a catalogue.
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let mut found = Self::default();
        for (number, database) in catalogue.databases.iter().enumerate() {
            found.add(number, database);
        }
        found
    }

    fn add(&mut self, number: usize, database: &Database) {
        let first = self.sequences.len();
        for one in &database.sequences {
            self.sequences.push(Sequence {
                database: number,
                name: one.name.clone(),
                label: one.name.clone(),
                after: one.after.saturating_sub(one.cached),
                cached: one.cached,
                in_order: one.in_order,
                is_owned: false,
            });
        }
        for spec in &database.tables {
            let table = self.table(number, &spec.schema, &spec.name, false);
            for (name, kind) in &spec.columns {
                let column = self.column(table, name);
                self.columns[column as usize].kind = *kind;
            }
            if !spec.definition.is_empty() {
                self.views.push((number, table, spec.definition.clone()));
            }
        }
        for one in &database.columns {
            let table = self.known(number, &one.schema, &one.table);
            let column = self.column(table, &one.column);
            let family = database.sequences.iter().position(|known| known.qualified == one.sequence);
            let family = family.map(|at| Family((first + at) as u32)).filter(|_| one.kind == Kind::Number);
            if let Some(family) = family {
                let sequence = &mut self.sequences[family.0 as usize];
                if !std::mem::replace(&mut sequence.is_owned, true) {
                    sequence.label = format!("{}.{}", one.table, one.column);
                }
                self.columns[column as usize].families.push(family);
            }
            self.makers.entry(table).or_default().push((column, one.clone(), family));
        }
        for (one, other, refers) in &database.same {
            let (from, to) = (self.named(number, one), self.named(number, other));
            let class = self.class(from);
            self.columns[class as usize].refers |= refers;
            self.columns[from as usize].refers |= refers;
            self.unite(from, to);
        }
        for one in &database.primary {
            let column = self.named(number, one);
            let class = self.class(column);
            self.columns[class as usize].is_primary = true;
        }
        if self.sequences[first..].iter().any(|one| !one.is_owned) {
            self.loose.insert(number);
        }
    }

    fn named(&mut self, database: usize, (schema, table, column): &Named) -> ColumnId {
        let table = self.known(database, schema, table);
        self.column(table, column)
    }

    /// A table of the catalogue, by its whole name.
    fn known(&mut self, database: usize, schema: &str, name: &str) -> TableId {
        let those = self.by_name.get(&(database, name.to_owned())).into_iter().flatten();
        let found = those.copied().find(|table| self.tables[*table].schema == schema);
        found.unwrap_or_else(|| self.table(database, schema, name, false))
    }

    fn table(&mut self, database: usize, schema: &str, name: &str, is_unknown: bool) -> TableId {
        let id = self.tables.len();
        self.tables.push(Table {
            database,
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns: Vec::new(),
            is_unknown,
        });
        self.by_name.entry((database, name.to_owned())).or_default().push(id);
        id
    }

    /// A table as a statement names it: the first one of its name, where the schema is not named. One that is not there is made up.
    pub(crate) fn find(&mut self, database: usize, schema: Option<&str>, name: &str) -> TableId {
        let those = self.by_name.get(&(database, name.to_owned())).into_iter().flatten();
        let found = those.copied().find(|table| schema.is_none_or(|schema| self.tables[*table].schema == schema));
        found.unwrap_or_else(|| self.table(database, schema.unwrap_or_default(), name, true))
    }

    /// Other tables of the same name: which of them a statement means depends on its search path.
    pub(crate) fn namesakes(&self, database: usize, table: TableId) -> Vec<TableId> {
        self.by_name.get(&(database, self.tables[table].name.clone())).cloned().unwrap_or_default()
    }

    /// A column of a table; one that is not known is made up.
    pub(crate) fn column(&mut self, table: TableId, name: &str) -> ColumnId {
        if let Some(id) = self.column_of(table, name) {
            return id;
        }
        let id = self.columns.len() as ColumnId;
        self.columns.push(Column {
            table,
            name: name.to_owned(),
            kind: Type::Number,
            same: id,
            families: Vec::new(),
            refers: false,
            is_primary: false,
            is_quantity: false,
            by_name: false,
        });
        self.tables[table].columns.push((name.to_owned(), id));
        id
    }

    /// A column that a table is known to have.
    pub(crate) fn column_of(&self, table: TableId, name: &str) -> Option<ColumnId> {
        self.tables[table].columns.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// The column that stands for its class.
    pub(crate) fn class(&self, column: ColumnId) -> ColumnId {
        let mut at = column;
        while self.columns[at as usize].same != at {
            at = self.columns[at as usize].same;
        }
        at
    }

    /// Two columns hold the same keys.
    fn unite(&mut self, one: ColumnId, other: ColumnId) {
        let (one, other) = (self.class(one), self.class(other));
        if one == other {
            return;
        }
        // The lower one stays, so that chains are short and the order of what is united does not matter.
        let (root, child) = (one.min(other), one.max(other));
        let child = &mut self.columns[child as usize];
        child.same = root;
        let families = std::mem::take(&mut child.families);
        let (refers, is_primary, is_quantity, by_name) =
            (child.refers, child.is_primary, child.is_quantity, child.by_name);
        let root = &mut self.columns[root as usize];
        for family in families {
            if !root.families.contains(&family) {
                root.families.push(family);
            }
        }
        root.refers |= refers;
        root.is_primary |= is_primary;
        root.is_quantity |= is_quantity;
        root.by_name |= by_name;
    }

    /// A statement takes two columns for the same. Those that hold keys of two sequences stay apart: a comparison does not make them one.
    pub(crate) fn compared(&mut self, one: ColumnId, other: ColumnId) {
        let (a, b) = (&self.columns[self.class(one) as usize], &self.columns[self.class(other) as usize]);
        let are_apart = !a.families.is_empty() && !b.families.is_empty();
        if !are_apart && a.kind == b.kind && a.kind != Type::Other {
            self.unite(one, other);
        }
    }

    /// A statement calculates with a column.
    pub(crate) fn calculated(&mut self, column: ColumnId) {
        let class = self.class(column);
        self.columns[class as usize].is_quantity = true;
    }

    pub(crate) fn kind(&self, column: ColumnId) -> Type {
        self.columns[column as usize].kind
    }

    /// The sequences whose keys a column holds.
    pub(crate) fn families(&self, column: ColumnId) -> &[Family] {
        &self.columns[self.class(column) as usize].families
    }

    /// Whether it was a name alone that gave a column its family.
    pub(crate) fn is_by_name(&self, column: ColumnId) -> bool {
        self.columns[self.class(column) as usize].by_name
    }

    /// A name did not tell the truth: the values contradict it.
    pub(crate) fn forget_name(&mut self, column: ColumnId) {
        let class = self.class(column);
        let class = &mut self.columns[class as usize];
        class.families.clear();
        class.by_name = false;
    }

    /// Whether it is proven that a column holds no keys of a sequence: it is calculated with, or is a primary key that no sequence feeds, or refers to one.
    pub(crate) fn is_plain(&self, column: ColumnId) -> bool {
        let class = &self.columns[self.class(column) as usize];
        let table = &self.tables[class.table];
        let may_be_loose = table.is_unknown || self.loose.contains(&table.database);
        class.families.is_empty() && (class.is_quantity || ((class.refers || class.is_primary) && !may_be_loose))
    }

    pub(crate) fn database_of(&self, column: ColumnId) -> usize {
        self.tables[self.columns[column as usize].table].database
    }

    /// As it is named in what is reported.
    pub(crate) fn label(&self, column: ColumnId) -> String {
        let column = &self.columns[column as usize];
        format!("{}.{}", self.tables[column.table].name, column.name)
    }

    /// Key columns of a table.
    pub(crate) fn makers(&self, table: TableId) -> &[(ColumnId, KeyColumn, Option<Family>)] {
        self.makers.get(&table).map_or(&[], Vec::as_slice)
    }

    /// Whether no database gives keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.makers.is_empty() && self.sequences.is_empty()
    }

    pub(crate) fn sequence(&self, family: Family) -> &Sequence {
        &self.sequences[family.0 as usize]
    }

    /// A sequence by its name without the schema.
    pub(crate) fn sequence_named(&self, database: usize, name: &str) -> Option<Family> {
        let found = self.sequences.iter().position(|one| one.database == database && one.name == name);
        found.map(|at| Family(at as u32))
    }

    /// Gives columns of which nothing else is known the family that their name says: `order_id` that of `orders.id`, and `customer_id`
    /// that of another `customer_id` which has one.
    pub(crate) fn join_by_name(&mut self) {
        let mut by_name: HashMap<(usize, String), Vec<ColumnId>> = HashMap::new();
        for (table, makers) in &self.makers {
            for (column, spec, _) in makers.iter().filter(|(.., family)| family.is_some()) {
                for name in referring(&spec.table, &spec.column) {
                    by_name.entry((self.tables[*table].database, name)).or_default().push(*column);
                }
            }
        }
        // `id` is the name of too many things.
        let own: HashSet<&str> = self.makers.values().flatten().map(|(_, spec, _)| spec.column.as_str()).collect();
        for (id, column) in (0..).zip(&self.columns) {
            if column.refers && !own.contains(column.name.as_str()) && !self.families(id).is_empty() {
                by_name.entry((self.tables[column.table].database, column.name.clone())).or_default().push(id);
            }
        }
        for id in 0..self.columns.len() as ColumnId {
            let column = &self.columns[id as usize];
            let class = &self.columns[self.class(id) as usize];
            if !class.families.is_empty() || class.is_quantity || column.kind == Type::Other || self.is_plain(id) {
                continue;
            }
            let Some(those) = by_name.get(&(self.tables[column.table].database, column.name.clone())) else { continue };
            let mut families = those.iter().map(|other| self.families(*other));
            let Some(first) = families.next().map(<[_]>::to_vec) else { continue };
            if families.all(|other| other == first) {
                let class = self.class(id);
                let class = &mut self.columns[class as usize];
                (class.families, class.by_name) = (first, true);
            }
        }
    }
}

/// Names of columns that refer to `table.column`.
fn referring(table: &str, column: &str) -> Vec<String> {
    let mut names = vec![table.to_owned()];
    names.extend(table.strip_suffix('s').map(str::to_owned));
    names.extend(table.strip_suffix("es").map(str::to_owned));
    names.extend(table.strip_suffix("ies").map(|stem| format!("{stem}y")));
    let column = column.strip_prefix(&format!("{table}_")).unwrap_or(column);
    names.iter().flat_map(|name| [format!("{name}_{column}"), format!("{name}{column}")]).collect()
}
