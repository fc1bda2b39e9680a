//! What stands at the places of queries: their columns, what they read from, and what they are limited to.

use sqlparser::ast::{
    Distinct, Expr, FunctionArg, GroupByExpr, JoinConstraint, JoinOperator, LimitClause, ObjectName, OrderByExpr,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor,
    TableWithJoins,
};

use super::roles::{CALCULATED, Reader, Role, arg_of, bare};
use super::scope::{Columned, Origin, Relation, Scope, name_of, names_of};

impl Reader<'_> {
    /// Reads a query whose columns have these roles, as far as they are known. Returns its columns.
    pub(super) fn query(&mut self, query: &Query, around: &Scope, roles: &[Role]) -> Vec<(String, Origin)> {
        let mut scope = Scope::within(around);
        for one in query.with.iter().flat_map(|with| &with.cte_tables) {
            let alias = name_of(&one.alias.name);
            let own: Vec<String> = one.alias.columns.iter().map(|column| name_of(&column.name)).collect();
            if query.with.as_ref().is_some_and(|with| with.recursive)
                && let SetExpr::SetOperation { left, .. } = one.query.body.as_ref()
            {
                // The first part says what the columns are that the second part refers to.
                let found = self.body(left, &scope, &[]);
                scope.named.push(Relation { alias: alias.clone(), of: Columned::Derived(renamed(found, &own)) });
            }
            let found = self.query(&one.query, &scope, &[]);
            scope.named.push(Relation { alias, of: Columned::Derived(renamed(found, &own)) });
        }
        let found = self.body(&query.body, &scope, roles);
        let ordered = query.order_by.as_ref().map(|order| &order.kind);
        if let Some(OrderByKind::Expressions(those)) = ordered {
            self.ordered(those, &scope);
        }
        let limits: Vec<&Expr> = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                limit.iter().chain(offset.iter().map(|offset| &offset.value)).collect()
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => vec![offset, limit],
            None => Vec::new(),
        };
        let fetched = query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref());
        limits.into_iter().chain(fetched).for_each(|one| self.expr(one, &Role::Plain, &scope));
        found
    }

    fn ordered(&mut self, those: &[OrderByExpr], scope: &Scope) {
        those.iter().for_each(|one| self.expr(&one.expr, &Role::Plain, scope));
    }

    fn body(&mut self, body: &SetExpr, scope: &Scope, roles: &[Role]) -> Vec<(String, Origin)> {
        match body {
            SetExpr::Select(select) => self.select(select, scope, roles),
            SetExpr::Query(query) => self.query(query, scope, roles),
            SetExpr::SetOperation { left, right, .. } => {
                let found = self.body(left, scope, roles);
                let other = self.body(right, scope, roles);
                found.iter().zip(&other).for_each(|((_, one), (_, other))| self.same(one, other));
                let both = |((name, one), (_, other)): ((String, Origin), (String, Origin))| match (one, other) {
                    (Origin::Slots(mut slots), Origin::Slots(more)) => {
                        slots.extend(more);
                        (name, Origin::Slots(slots))
                    }
                    (Origin::Slots(_) | Origin::Plain, other) => (name, other),
                    (one, _) => (name, one),
                };
                found.into_iter().zip(other).map(both).collect()
            }
            SetExpr::Values(values) => {
                let mut found: Vec<(String, Origin)> = Vec::new();
                for row in &values.rows {
                    for (at, one) in row.content.iter().enumerate() {
                        self.expr(one, roles.get(at).unwrap_or(&Role::Neutral), scope);
                        let origin = self.origin(one, scope);
                        match (found.get_mut(at), origin) {
                            (Some((_, Origin::Slots(slots))), Origin::Slots(more)) => slots.extend(more),
                            (Some(_), _) => (),
                            (None, origin) => found.push((format!("column{}", at + 1), origin)),
                        }
                    }
                }
                found
            }
            SetExpr::Insert(Statement::Insert(insert)) => self.insert(insert, scope),
            SetExpr::Update(Statement::Update(update)) => self.update(update, scope),
            SetExpr::Delete(Statement::Delete(delete)) => self.delete(delete, scope),
            _ => Vec::new(),
        }
    }

    fn select(&mut self, select: &Select, around: &Scope, roles: &[Role]) -> Vec<(String, Origin)> {
        let mut scope = Scope::within(around);
        for from in &select.from {
            self.from(from, &mut scope);
        }
        if let Some(Distinct::On(those)) = &select.distinct {
            those.iter().for_each(|one| self.expr(one, &Role::Plain, &scope));
        }
        let found = self.items(&select.projection, &scope, roles);
        for one in select.selection.iter().chain(&select.having) {
            self.expr(one, &Role::Neutral, &scope);
        }
        if let GroupByExpr::Expressions(those, _) = &select.group_by {
            those.iter().for_each(|one| self.expr(one, &Role::Plain, &scope));
        }
        found
    }

    /// Items of SELECT or RETURNING, with the roles of values that stand there alone.
    pub(super) fn items(&mut self, items: &[SelectItem], scope: &Scope, roles: &[Role]) -> Vec<(String, Origin)> {
        let mut found = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = match bare(expr) {
                        Expr::Identifier(name) => name_of(name),
                        Expr::CompoundIdentifier(names) => names.last().map(name_of).unwrap_or_default(),
                        Expr::Function(function) => names_of(&function.name).pop().unwrap_or_default(),
                        _ => String::new(),
                    };
                    self.item(expr, name, scope, roles, &mut found);
                }
                SelectItem::ExprWithAlias { expr, alias } => self.item(expr, name_of(alias), scope, roles, &mut found),
                SelectItem::Wildcard(_) => found.extend(scope.all(self.columns, None)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    found.extend(scope.all(self.columns, names_of(name).pop().as_deref()));
                }
                _ => (),
            }
        }
        found
    }

    fn item(&mut self, expr: &Expr, name: String, scope: &Scope, roles: &[Role], found: &mut Vec<(String, Origin)>) {
        let role = roles.get(found.len()).unwrap_or(&Role::Neutral);
        self.expr(expr, role, scope);
        let origin = self.origin(expr, scope);
        if let (Role::Column(target), Origin::Column(column)) = (role, &origin) {
            // What is copied from one column to another is the same there.
            self.columns.compared(*target, *column);
        }
        found.push((name, origin));
    }

    pub(super) fn from(&mut self, from: &TableWithJoins, scope: &mut Scope) {
        self.factor(&from.relation, scope);
        for join in &from.joins {
            let before = scope.relations.len();
            self.factor(&join.relation, scope);
            let constraint = match &join.join_operator {
                JoinOperator::Join(one)
                | JoinOperator::Inner(one)
                | JoinOperator::Left(one)
                | JoinOperator::LeftOuter(one)
                | JoinOperator::Right(one)
                | JoinOperator::RightOuter(one)
                | JoinOperator::FullOuter(one)
                | JoinOperator::CrossJoin(one) => one,
                _ => continue,
            };
            match constraint {
                JoinConstraint::On(expr) => self.expr(expr, &Role::Neutral, scope),
                JoinConstraint::Using(names) => self.using(names, before, scope),
                _ => (),
            }
        }
    }

    fn using(&mut self, names: &[ObjectName], before: usize, scope: &Scope) {
        for name in names.iter().filter_map(|name| names_of(name).pop()) {
            let mut sides = [&scope.relations[..before], &scope.relations[before..]].map(|side| {
                let side = Scope { relations: side.to_vec(), ..Scope::default() };
                side.column(self.columns, None, &name)
            });
            let [one, other] = &mut sides;
            self.same(one, other);
        }
    }

    fn factor(&mut self, factor: &TableFactor, scope: &mut Scope) {
        let (alias, of) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let relation = self.relation(name, scope);
                let Some(alias) = alias else { return scope.relations.push(relation) };
                let own: Vec<String> = alias.columns.iter().map(|one| name_of(&one.name)).collect();
                let of = if own.is_empty() {
                    relation.of
                } else {
                    Columned::Derived(renamed(relation.columns(self.columns), &own))
                };
                return scope.relations.push(Relation { alias: name_of(&alias.name), of });
            }
            TableFactor::Derived { subquery, alias, lateral, .. } => {
                let none = Scope::default();
                let around = if *lateral { &*scope } else { scope.around.unwrap_or(&none) };
                (alias, self.query(subquery, around, &[]))
            }
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                (alias, self.table_function(name, &args.args, scope))
            }
            TableFactor::Function { name, alias, args, .. } => (alias, self.table_function(name, args, scope)),
            TableFactor::UNNEST { alias, array_exprs, .. } => {
                let found = array_exprs.iter().map(|one| {
                    self.expr(one, &Role::Neutral, scope);
                    ("unnest".to_owned(), self.origin(one, scope))
                });
                (alias, found.collect())
            }
            TableFactor::NestedJoin { table_with_joins, .. } => return self.from(table_with_joins, scope),
            _ => return,
        };
        let own: Vec<String> = alias.iter().flat_map(|alias| &alias.columns).map(|one| name_of(&one.name)).collect();
        let name = alias.as_ref().map(|alias| name_of(&alias.name)).unwrap_or_default();
        let is_scalar = own.is_empty() && of.len() == 1 && !matches!(factor, TableFactor::Derived { .. });
        let own = if is_scalar { vec![name.clone()] } else { own };
        scope.relations.push(Relation { alias: name, of: Columned::Derived(renamed(of, &own)) });
    }

    /// A function in FROM.
    fn table_function(&mut self, name: &ObjectName, args: &[FunctionArg], scope: &Scope) -> Vec<(String, Origin)> {
        let name = names_of(name).pop().unwrap_or_default();
        let is_own = (self.own_functions)(&name);
        let mut found = Vec::new();
        for (at, arg) in args.iter().filter_map(arg_of).enumerate() {
            let role = match name.as_str() {
                _ if is_own => Role::Argument(name.clone(), at),
                "unnest" => Role::Neutral,
                "generate_series" => Role::Open("it is the bound of a series"),
                _ => Role::Plain,
            };
            self.expr(arg, &role, scope);
            if name == "unnest" {
                found.push(("unnest".to_owned(), self.origin(arg, scope)));
            }
        }
        if found.is_empty() { vec![(name, Origin::Open(CALCULATED))] } else { found }
    }

    /// A table, or a query of WITH, by its name.
    pub(super) fn relation(&mut self, name: &ObjectName, scope: &Scope) -> Relation {
        let names = names_of(name);
        let bare = names.last().cloned().unwrap_or_default();
        let schema = names.len().checked_sub(2).map(|at| names[at].as_str());
        if schema.is_none()
            && let Some(found) = scope.named(&bare)
        {
            return Relation { alias: bare, of: found.of.clone() };
        }
        let table = self.columns.find(self.database, schema, &bare);
        let has_namesakes = schema.is_none() && self.columns.namesakes(self.database, table).len() > 1;
        let of = if has_namesakes { Columned::Namesakes } else { Columned::Table(table) };
        Relation { alias: bare, of }
    }
}

/// Columns with the names that an alias gives them, as far as it does.
fn renamed(mut columns: Vec<(String, Origin)>, names: &[String]) -> Vec<(String, Origin)> {
    for (column, name) in columns.iter_mut().zip(names) {
        name.clone_into(&mut column.0);
    }
    columns
}
