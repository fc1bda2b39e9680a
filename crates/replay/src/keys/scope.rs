//! Names in a statement: which table a name stands for, and what its columns are.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::catalogue::{ColumnId, Columns, TableId};
use super::key::Slot;

/// Where the value of an expression comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is the value of this column.
    Column(ColumnId),
    /// It is one of these values of the statement.
    Slots(Vec<Slot>),
    /// It is no key: a count, a length, a date.
    Plain,
    /// Nothing says what it is, for this reason.
    Open(&'static str),
}

/// What a name in FROM stands for.
#[derive(Clone)]
pub(crate) struct Relation {
    pub alias: String,
    pub of: Columned,
}

#[derive(Clone)]
pub(crate) enum Columned {
    Table(TableId),
    /// One of several tables of the same name.
    Namesakes,
    /// A subquery, with the names of its columns.
    Derived(Vec<(String, Origin)>),
}

/// The relations of a query, and of those around it.
#[derive(Default)]
pub(crate) struct Scope<'a> {
    pub relations: Vec<Relation>,
    pub around: Option<&'a Scope<'a>>,
    /// Queries of WITH by name.
    pub named: Vec<Relation>,
}

const OF_NAMESAKES: &str = "tables of several schemas have this name";
const NOT_FOUND: &str = "the name of its column was not found";

impl<'a> Scope<'a> {
    pub(crate) fn within(around: &'a Scope<'a>) -> Self {
        Self { relations: Vec::new(), around: Some(around), named: Vec::new() }
    }

    /// A query of WITH.
    pub(crate) fn named(&self, name: &str) -> Option<&Relation> {
        let found = self.named.iter().rfind(|one| one.alias == name);
        found.or_else(|| self.around.and_then(|around| around.named(name)))
    }

    /// A column by its name, with or without that of its relation.
    pub(crate) fn column(&self, columns: &mut Columns, qualifier: Option<&str>, name: &str) -> Origin {
        if let Some(found) = self.own(columns, qualifier, name) {
            return found;
        }
        if let Some(around) = self.around {
            let found = around.column(columns, qualifier, name);
            if found != Origin::Open(NOT_FOUND) {
                return found;
            }
        }
        // A table whose columns nobody knows may have it.
        let mut unknown = self.relations.iter().filter_map(|one| match one.of {
            Columned::Table(table) if columns.tables[table].is_unknown => Some(table),
            _ => None,
        });
        match (unknown.next(), unknown.next()) {
            (Some(table), None) if qualifier.is_none() => Origin::Column(columns.column(table, name)),
            _ => Origin::Open(NOT_FOUND),
        }
    }

    fn own(&self, columns: &mut Columns, qualifier: Option<&str>, name: &str) -> Option<Origin> {
        for one in self.relations.iter().filter(|one| qualifier.is_none_or(|qualifier| one.alias == qualifier)) {
            match &one.of {
                Columned::Table(table) if qualifier.is_some() && columns.tables[*table].is_unknown => {
                    return Some(Origin::Column(columns.column(*table, name)));
                }
                Columned::Table(table) => {
                    if let Some(found) = columns.column_of(*table, name) {
                        return Some(Origin::Column(found));
                    }
                }
                Columned::Namesakes => return Some(Origin::Open(OF_NAMESAKES)),
                Columned::Derived(derived) => {
                    if let Some((_, found)) = derived.iter().find(|(known, _)| known == name) {
                        return Some(found.clone());
                    }
                }
            }
        }
        None
    }

    /// All columns, as `*` names them.
    pub(crate) fn all(&self, columns: &Columns, qualifier: Option<&str>) -> Vec<(String, Origin)> {
        let mut found = Vec::new();
        for one in self.relations.iter().filter(|one| qualifier.is_none_or(|qualifier| one.alias == qualifier)) {
            found.extend(one.columns(columns));
        }
        found
    }
}

impl Relation {
    /// Its columns in order.
    pub(crate) fn columns(&self, columns: &Columns) -> Vec<(String, Origin)> {
        match &self.of {
            Columned::Table(table) => {
                columns.tables[*table].columns.iter().map(|(name, id)| (name.clone(), Origin::Column(*id))).collect()
            }
            Columned::Namesakes => Vec::new(),
            Columned::Derived(derived) => derived.clone(),
        }
    }
}

/// A name as the catalogue has it: in small letters unless it was quoted.
pub(crate) fn name_of(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// The parts of a name.
pub(crate) fn names_of(name: &ObjectName) -> Vec<String> {
    let part = |part: &ObjectNamePart| part.as_ident().map(name_of).unwrap_or_default();
    name.0.iter().map(part).collect()
}
