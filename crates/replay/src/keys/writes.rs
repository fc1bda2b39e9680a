//! What stands at the places of statements that write, and which columns they calculate with.

use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, ObjectName, OnConflictAction, OnInsert, Query,
    SetExpr, TableObject, Update, UpdateTableFromKind,
};

use super::catalogue::ColumnId;
use super::roles::{Reader, Role, bare, is_arithmetic, tuple};
use super::scope::{Columned, Origin, Relation, Scope, name_of, names_of};

impl Reader<'_> {
    pub(super) fn insert(&mut self, insert: &Insert, around: &Scope) -> Vec<(String, Origin)> {
        let TableObject::TableName(name) = &insert.table else { return Vec::new() };
        let mut scope = Scope::within(around);
        let mut relation = self.relation(name, &Scope::default());
        if let Some(alias) = &insert.table_alias {
            relation.alias = name_of(&alias.alias);
        }
        let named: Vec<String> = insert.columns.iter().filter_map(|column| names_of(column).pop()).collect();
        let targets: Vec<Origin> = match relation.of {
            Columned::Table(table) if !named.is_empty() => {
                let columns = &mut self.columns;
                let column = |name: &String| match columns.column_of(table, name) {
                    Some(found) => Origin::Column(found),
                    None if columns.tables[table].is_unknown => Origin::Column(columns.column(table, name)),
                    None => Origin::Open("its column is not in the database"),
                };
                named.iter().map(column).collect()
            }
            Columned::Table(table) if self.columns.tables[table].is_unknown => {
                // In the order of a table of which only this is known.
                (0..32).map(|at| Origin::Column(self.columns.column(table, &format!("column {}", at + 1)))).collect()
            }
            _ => relation.columns(self.columns).into_iter().map(|(_, origin)| origin).collect(),
        };
        let roles: Vec<Role> = targets.iter().map(Self::beside).collect();
        if let Some(source) = &insert.source {
            self.query(source, around, &roles);
        }
        if let Columned::Table(table) = relation.of {
            let is_default = |at: usize| insert.source.as_ref().is_some_and(|source| is_default(source, at));
            let given = targets.iter().enumerate().filter(|(at, _)| !is_default(*at));
            let width = insert.source.as_ref().map_or(0, |source| width(source));
            let given = given.take(if named.is_empty() { width } else { usize::MAX });
            let given = given.filter_map(|(_, origin)| if let Origin::Column(id) = origin { Some(*id) } else { None });
            self.inserted.push((table, given.collect()));
        }
        let excluded = Relation { alias: "excluded".to_owned(), of: relation.of.clone() };
        scope.relations.push(relation);
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on
            && let OnConflictAction::DoUpdate(update) = &conflict.action
        {
            scope.relations.push(excluded);
            self.assignments(&update.assignments, &scope);
            if let Some(selection) = &update.selection {
                self.expr(selection, &Role::Neutral, &scope);
            }
            scope.relations.pop();
        }
        self.items(insert.returning.as_deref().unwrap_or_default(), &scope, &[])
    }

    pub(super) fn update(&mut self, update: &Update, around: &Scope) -> Vec<(String, Origin)> {
        let mut scope = Scope::within(around);
        self.from(&update.table, &mut scope);
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from {
            from.iter().for_each(|one| self.from(one, &mut scope));
        }
        self.assignments(&update.assignments, &scope);
        if let Some(selection) = &update.selection {
            self.expr(selection, &Role::Neutral, &scope);
        }
        self.items(update.returning.as_deref().unwrap_or_default(), &scope, &[])
    }

    fn assignments(&mut self, those: &[Assignment], scope: &Scope) {
        for one in those {
            match &one.target {
                AssignmentTarget::ColumnName(name) => self.assignment(name, &one.value, scope),
                AssignmentTarget::Tuple(names) => match (tuple(&one.value), bare(&one.value)) {
                    (Some(values), _) => {
                        names.iter().zip(values).for_each(|(name, value)| self.assignment(name, value, scope));
                    }
                    (None, Expr::Subquery(query)) => {
                        let roles: Vec<Role> =
                            names.iter().map(|name| Self::beside(&self.target(name, scope))).collect();
                        self.query(query, scope, &roles);
                    }
                    _ => (),
                },
            }
        }
    }

    fn target(&mut self, name: &ObjectName, scope: &Scope) -> Origin {
        // The target is a column of the first table alone.
        let first = Scope { relations: scope.relations.first().cloned().into_iter().collect(), ..Scope::default() };
        first.column(self.columns, None, &names_of(name).pop().unwrap_or_default())
    }

    fn assignment(&mut self, name: &ObjectName, value: &Expr, scope: &Scope) {
        let target = self.target(name, scope);
        if let Origin::Column(column) = target {
            if let Expr::BinaryOp { left, op, right } = bare(value)
                && is_arithmetic(op)
                && [left, right].into_iter().any(|side| self.mentions(side, column, scope))
            {
                self.columns.calculated(column);
            }
            let source = self.origin(value, scope);
            self.same(&target, &source);
        }
        self.expr(value, &Self::beside(&target), scope);
    }

    /// Whether a side of a calculation has a column in it.
    fn mentions(&mut self, expr: &Expr, column: ColumnId, scope: &Scope) -> bool {
        match bare(expr) {
            Expr::BinaryOp { left, right, .. } => {
                self.mentions(left, column, scope) || self.mentions(right, column, scope)
            }
            other => self.origin(other, scope) == Origin::Column(column),
        }
    }

    pub(super) fn delete(&mut self, delete: &Delete, around: &Scope) -> Vec<(String, Origin)> {
        let mut scope = Scope::within(around);
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        for one in from.iter().chain(delete.using.iter().flatten()) {
            self.from(one, &mut scope);
        }
        if let Some(selection) = &delete.selection {
            self.expr(selection, &Role::Neutral, &scope);
        }
        self.items(delete.returning.as_deref().unwrap_or_default(), &scope, &[])
    }
}

/// How many values a row of INSERT has.
fn width(source: &Query) -> usize {
    match source.body.as_ref() {
        SetExpr::Values(values) => values.rows.iter().map(|row| row.content.len()).max().unwrap_or(0),
        SetExpr::Select(select) => select.projection.len(),
        _ => usize::MAX,
    }
}

/// Whether a value of every row is `DEFAULT`.
fn is_default(source: &Query, at: usize) -> bool {
    let SetExpr::Values(values) = source.body.as_ref() else { return false };
    let is_one = |expr: &Expr| matches!(expr, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"));
    values.rows.iter().all(|row| row.content.get(at).is_some_and(is_one))
}
