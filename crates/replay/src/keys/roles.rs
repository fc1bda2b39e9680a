//! What stands at each place of a statement: the value of which column, or a number that is no key.
//!
//! A place gets its role from what is around it: `o.id = $1` makes the parameter a value of that column, as INSERT and SET do; a limit, a summand, an interval are no keys.
//! Beside that, the columns that a statement compares with each other are the same, and those that it calculates with are quantities.

use std::collections::BTreeMap;
use std::ops::Range;

use sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    InTarget, Query, Statement, UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Location;

use super::catalogue::{ColumnId, Columns, TableId, Type};
use super::key::Slot;
use super::parse::Parsed;
use super::scope::{Origin, Scope, name_of, names_of};

/// What stands at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing that the database could tell apart: it is compared with nothing and kept nowhere.
    Neutral,
    /// A number that is no key.
    Plain,
    /// A value of this column.
    Column(ColumnId),
    /// An argument of a function of the user's.
    Argument(String, usize),
    /// Nothing says what, for this reason.
    Open(&'static str),
}

impl Role {
    /// What a place is that stands for several things: what says more wins, and what contradicts is open.
    pub(crate) fn and(self, other: Self, columns: &Columns) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Neutral, one) | (one, Self::Neutral) => one,
            (Self::Column(one), Self::Column(other)) => {
                let (own, its) = (columns.families(one), columns.families(other));
                if its.is_empty() || own == its {
                    Self::Column(one)
                } else if own.is_empty() {
                    Self::Column(other)
                } else {
                    Self::Open("it stands for keys of two sequences")
                }
            }
            (one @ Self::Column(_), Self::Open(_) | Self::Argument(..))
            | (Self::Open(_) | Self::Argument(..), one @ Self::Column(_)) => one,
            (Self::Plain, Self::Column(column)) | (Self::Column(column), Self::Plain) => {
                if columns.families(column).is_empty() {
                    Self::Plain
                } else {
                    Self::Open("it is a key at one of its places and a number at another")
                }
            }
            (Self::Plain, one) | (one, Self::Plain) => one,
            (one, _) => one,
        }
    }
}

/// See the module.
pub(crate) struct Reader<'a> {
    pub columns: &'a mut Columns,
    pub database: usize,
    pub own_functions: &'a dyn Fn(&str) -> bool,
    text: &'a str,
    parsed: &'a Parsed,
    /// Where the literals of the text are.
    literals: &'a [Range<usize>],
    /// Where the statement is that is read.
    range: Range<usize>,
    pub roles: BTreeMap<Slot, Vec<Role>>,
    /// Tables that rows are inserted into, with the columns that are given explicitly.
    pub inserted: Vec<(TableId, Vec<ColumnId>)>,
    /// Columns of the answer.
    pub outputs: Vec<(String, Origin)>,
}

/// Functions that return one of the values that they are given, or all of them.
const PASSING_ONE: [&str; 15] = [
    "min",
    "max",
    "any_value",
    "unnest",
    "array_agg",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "int2",
    "int4",
    "int8",
    "text",
    "varchar",
    "numeric",
];
const PASSING_ALL: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];
/// Functions that count, measure and round, of times and of texts: neither what they are given nor what they return is a key.
const COUNTING: [&str; 50] = [
    "sum",
    "avg",
    "count",
    "length",
    "char_length",
    "octet_length",
    "bit_length",
    "cardinality",
    "array_length",
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "ntile",
    "percentile_cont",
    "percentile_disc",
    "round",
    "trunc",
    "floor",
    "ceil",
    "ceiling",
    "power",
    "sqrt",
    "exp",
    "ln",
    "log",
    "random",
    "setseed",
    "pg_sleep",
    "substr",
    "substring",
    "left",
    "right",
    "lpad",
    "rpad",
    "repeat",
    "split_part",
    "strpos",
    "position",
    "chr",
    "ascii",
    "now",
    "date_trunc",
    "date_part",
    "age",
    "make_date",
    "make_interval",
    "to_timestamp",
    "make_timestamp",
    "extract",
];

pub(super) const CALCULATED: &str = "it is compared with something that is calculated";
const IN_CALCULATION: &str = "it is part of a calculation";
const IN_TEXT: &str = "it becomes part of a text or a document";
const NOT_READ: &str = "this kind of statement is not read";

impl<'a> Reader<'a> {
    pub(crate) fn new(
        columns: &'a mut Columns,
        database: usize,
        own_functions: &'a dyn Fn(&str) -> bool,
        (text, parsed, literals): (&'a str, &'a Parsed, &'a [Range<usize>]),
    ) -> Self {
        let (roles, inserted, outputs) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { columns, database, own_functions, text, parsed, literals, range: 0..0, roles, inserted, outputs }
    }

    /// Reads the statements that could be parsed.
    pub(crate) fn statements(&mut self) {
        for (number, statement) in self.parsed.statements.iter().enumerate() {
            if let Some(statement) = statement {
                self.range = self.parsed.range(self.text, number);
                self.statement(statement);
            }
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let scope = Scope::default();
        self.outputs = match statement {
            Statement::Query(query) => self.query(query, &scope, &[]),
            Statement::Insert(insert) => self.insert(insert, &scope),
            Statement::Update(update) => self.update(update, &scope),
            Statement::Delete(delete) => self.delete(delete, &scope),
            Statement::Explain { statement, .. } => return self.statement(statement),
            Statement::Prepare { statement, .. } => return self.statement(statement),
            Statement::Declare { stmts, .. } => {
                for one in stmts.iter().filter_map(|one| one.for_query.as_ref()) {
                    self.query(one, &scope, &[]);
                }
                return;
            }
            Statement::Call(function) => {
                self.function(function, &Role::Neutral, &scope);
                return;
            }
            Statement::Execute { name, parameters, .. } => {
                let name = name.as_ref().map(|name| names_of(name).join(".")).unwrap_or_default();
                for (at, one) in parameters.iter().enumerate() {
                    self.expr(one, &Role::Argument(format!("EXECUTE {name}"), at), &scope);
                }
                return;
            }
            Statement::CreateTable(create) => {
                if let Some(query) = &create.query {
                    self.query(query, &scope, &[]);
                }
                return self.rest_is(&Role::Plain);
            }
            Statement::Merge(_) | Statement::Copy { .. } => return self.rest_is(&Role::Open(NOT_READ)),
            // A setting of the application's own may be a key: `SET app.user = '17'`.
            Statement::Set(_) => {
                let is_own = self.text[self.range.clone()].split('=').next().is_some_and(|head| head.contains('.'));
                let role = if is_own { Role::Open("it is a setting of the application's") } else { Role::Plain };
                return self.rest_is(&role);
            }
            _ => return self.rest_is(&Role::Plain),
        };
    }

    /// The literals of the statement that have no role yet.
    fn rest_is(&mut self, role: &Role) {
        for (at, literal) in self.literals.iter().enumerate() {
            if self.range.contains(&literal.start) {
                self.roles.entry(Slot::Literal(at)).or_insert_with(|| vec![role.clone()]);
            }
        }
    }

    // Values ---------------------------------------------------------------------------------------------------------------

    fn slot(&self, value: &ValueWithSpan) -> Option<Slot> {
        if let Value::Placeholder(name) = &value.value {
            return name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1).map(Slot::Parameter);
        }
        let (begin, end) = (self.byte(value.span.start)?, self.byte(value.span.end)?);
        let at = self.literals.partition_point(|literal| literal.start < begin);
        self.literals.get(at).filter(|literal| literal.start < end.max(begin + 1)).map(|_| Slot::Literal(at))
    }

    fn byte(&self, at: Location) -> Option<usize> {
        self.parsed.byte_of(self.text, at)
    }

    fn note(&mut self, slot: Slot, role: &Role) {
        let role = match role {
            Role::Column(column) if self.columns.kind(*column) == Type::Other => Role::Plain,
            Role::Column(column) if self.columns.kind(*column) == Type::Json => Role::Open(IN_TEXT),
            other => other.clone(),
        };
        let known = self.roles.entry(slot).or_default();
        if !known.contains(&role) {
            known.push(role);
        }
    }

    fn value(&mut self, value: &ValueWithSpan, role: &Role) {
        if let Some(slot) = self.slot(value) {
            self.note(slot, role);
        }
    }

    /// What a value is that is compared with something of this origin.
    pub(super) fn beside(origin: &Origin) -> Role {
        match origin {
            Origin::Column(column) => Role::Column(*column),
            Origin::Slots(_) => Role::Neutral,
            Origin::Plain => Role::Plain,
            Origin::Open(why) => Role::Open(why),
        }
    }

    /// Both sides of a comparison, or of an assignment, are the same kind of value.
    pub(super) fn same(&mut self, one: &Origin, other: &Origin) {
        match (one, other) {
            (Origin::Column(one), Origin::Column(other)) => self.columns.compared(*one, *other),
            (Origin::Slots(slots), other) | (other, Origin::Slots(slots)) => {
                let role = Self::beside(other);
                slots.iter().for_each(|slot| self.note(*slot, &role));
            }
            _ => (),
        }
    }

    // Expressions ----------------------------------------------------------------------------------------------------------

    /// Where the value of an expression comes from.
    pub(super) fn origin(&mut self, expr: &Expr, scope: &Scope) -> Origin {
        match expr {
            Expr::Identifier(name) => scope.column(self.columns, None, &name_of(name)),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [.., relation, name] => scope.column(self.columns, Some(&name_of(relation)), &name_of(name)),
                _ => Origin::Open(CALCULATED),
            },
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.origin(inner, scope),
            Expr::Cast { expr: inner, data_type, .. } if !is_plain_type(data_type) => self.origin(inner, scope),
            Expr::Value(value) => self.slot(value).map_or(Origin::Plain, |slot| Origin::Slots(vec![slot])),
            Expr::Array(array) => self.first_of(array.elem.iter(), scope),
            Expr::Case { conditions, else_result, .. } => {
                self.first_of(conditions.iter().map(|one| &one.result).chain(else_result.as_deref()), scope)
            }
            Expr::Function(function) => self.origin_of_function(function, scope),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.origin(expr, scope),
            Expr::BinaryOp { op, .. } if is_arithmetic(op) => Origin::Open(CALCULATED),
            Expr::BinaryOp { op: BinaryOperator::LongArrow | BinaryOperator::HashLongArrow, .. } => {
                Origin::Open("it is compared with a part of a document")
            }
            Expr::Subquery(_) | Expr::CompoundFieldAccess { .. } | Expr::JsonAccess { .. } => Origin::Open(CALCULATED),
            _ => Origin::Plain,
        }
    }

    /// Of several expressions for one value: that of a column, else all that stand there.
    fn first_of<'e>(&mut self, those: impl Iterator<Item = &'e Expr>, scope: &Scope) -> Origin {
        let (mut slots, mut open) = (Vec::new(), None);
        for one in those {
            match self.origin(one, scope) {
                found @ Origin::Column(_) => return found,
                Origin::Slots(more) => slots.extend(more),
                found @ Origin::Open(_) => open = Some(found),
                Origin::Plain => (),
            }
        }
        open.unwrap_or(if slots.is_empty() { Origin::Plain } else { Origin::Slots(slots) })
    }

    fn origin_of_function(&mut self, function: &Function, scope: &Scope) -> Origin {
        let name = names_of(&function.name).pop().unwrap_or_default();
        let args = args_of(function);
        match name.as_str() {
            _ if (self.own_functions)(&name) => Origin::Open("it is compared with what a function returns"),
            name if PASSING_ONE.contains(&name) => {
                args.first().map_or(Origin::Plain, |first| self.origin(first, scope))
            }
            name if PASSING_ALL.contains(&name) => self.first_of(args.into_iter(), scope),
            name if COUNTING.contains(&name) => Origin::Plain,
            _ => Origin::Open("it is compared with what a function returns"),
        }
    }

    /// Reads an expression, at whose place a value has this role.
    pub(super) fn expr(&mut self, expr: &Expr, role: &Role, scope: &Scope) {
        match expr {
            Expr::Value(value) => self.value(value, role),
            Expr::TypedString(typed) => self.value(&typed.value, &Role::Plain),
            Expr::Interval(interval) => self.expr(&interval.value, &Role::Plain, scope),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.expr(inner, role, scope),
            Expr::Prefixed { value, .. } => self.expr(value, role, scope),
            Expr::Cast { expr: inner, data_type, .. } => {
                let role = if is_plain_type(data_type) { &Role::Plain } else { role };
                self.expr(inner, role, scope);
            }
            Expr::UnaryOp { op, expr: inner } => {
                let role = if *op == UnaryOperator::Plus { role } else { &Role::Plain };
                self.expr(inner, role, scope);
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, role, scope),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.compare(left, right, scope);
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => self.compare(left, right, scope),
            Expr::In { expr, target, .. } => self.is_in(expr, target, scope),
            Expr::Between { expr, low, high, .. } => {
                self.compare(expr, low, scope);
                self.compare(expr, high, scope);
            }
            Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => self.expr(inner, &Role::Neutral, scope),
            Expr::Array(array) => array.elem.iter().for_each(|one| self.expr(one, role, scope)),
            Expr::Tuple(those) => those.iter().for_each(|one| self.expr(one, &Role::Open(CALCULATED), scope)),
            Expr::Case { operand, conditions, else_result, .. } => {
                for one in conditions {
                    self.condition(operand.as_deref(), &one.condition, scope);
                    self.expr(&one.result, role, scope);
                }
                else_result.iter().for_each(|result| self.expr(result, role, scope));
            }
            Expr::Function(function) => self.function(function, role, scope),
            Expr::Exists { subquery, .. } => {
                self.query(subquery, scope, &[]);
            }
            Expr::Subquery(query) => {
                self.query(query, scope, std::slice::from_ref(role));
            }
            Expr::Like { expr, pattern, .. }
            | Expr::ILike { expr, pattern, .. }
            | Expr::SimilarTo { expr, pattern, .. } => {
                self.expr(expr, &Role::Plain, scope);
                self.expr(pattern, &Role::Plain, scope);
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.expr(timestamp, &Role::Plain, scope);
                self.expr(time_zone, &Role::Plain, scope);
            }
            Expr::Extract { expr, .. } | Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => {
                self.expr(expr, &Role::Plain, scope);
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                self.expr(expr, &Role::Open(IN_TEXT), scope);
                for one in [substring_from, substring_for].into_iter().flatten() {
                    self.expr(one, &Role::Plain, scope);
                }
            }
            Expr::CompoundFieldAccess { root, .. } => self.expr(root, role, scope),
            // What is not read here has no role, and what has none is open.
            _ => (),
        }
    }

    /// A condition of CASE, or a value that the `operand` is compared with.
    fn condition(&mut self, operand: Option<&Expr>, condition: &Expr, scope: &Scope) {
        match operand {
            Some(operand) => self.compare(operand, condition, scope),
            None => self.expr(condition, &Role::Neutral, scope),
        }
    }

    fn binary(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr, role: &Role, scope: &Scope) {
        match op {
            BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor => {
                // A chain of them is deep on its left.
                let mut left = left;
                self.expr(right, &Role::Neutral, scope);
                while let Expr::BinaryOp { left: more, op: BinaryOperator::And | BinaryOperator::Or, right } = left {
                    self.expr(right, &Role::Neutral, scope);
                    left = more;
                }
                self.expr(left, &Role::Neutral, scope);
            }
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => self.compare(left, right, scope),
            BinaryOperator::AtArrow | BinaryOperator::ArrowAt | BinaryOperator::PGOverlap => {
                self.compare(left, right, scope);
            }
            _ if is_arithmetic(op) => self.calculation(left, right, role, scope),
            BinaryOperator::StringConcat => {
                self.expr(left, &Role::Open(IN_TEXT), scope);
                self.expr(right, &Role::Open(IN_TEXT), scope);
            }
            _ => {
                self.expr(left, &Role::Open(CALCULATED), scope);
                self.expr(right, &Role::Plain, scope);
            }
        }
    }

    pub(super) fn compare(&mut self, left: &Expr, right: &Expr, scope: &Scope) {
        if let (Some(left), Some(right)) = (tuple(left), tuple(right)) {
            return left.iter().zip(right).for_each(|(left, right)| self.compare(left, right, scope));
        }
        if let (Some(left), Expr::Subquery(query)) = (tuple(left), right) {
            return self.against(left, query, scope);
        }
        if let Expr::Subquery(query) = bare(right) {
            return self.against(std::slice::from_ref(left), query, scope);
        }
        if let Expr::Subquery(query) = bare(left) {
            return self.against(std::slice::from_ref(right), query, scope);
        }
        let (one, other) = (self.origin(left, scope), self.origin(right, scope));
        self.same(&one, &other);
        self.expr(left, &Self::beside(&other), scope);
        self.expr(right, &Self::beside(&one), scope);
    }

    /// Expressions that are compared with the columns of a query.
    fn against(&mut self, those: &[Expr], query: &Query, scope: &Scope) {
        let origins: Vec<Origin> = those.iter().map(|one| self.origin(one, scope)).collect();
        let roles: Vec<Role> = origins.iter().map(Self::beside).collect();
        let found = self.query(query, scope, &roles);
        for ((one, origin), (_, other)) in those.iter().zip(&origins).zip(&found) {
            self.same(origin, other);
            self.expr(one, &Self::beside(other), scope);
        }
    }

    fn is_in(&mut self, expr: &Expr, target: &InTarget, scope: &Scope) {
        match target {
            InTarget::List(list) => list.iter().for_each(|one| self.compare(expr, one, scope)),
            InTarget::Subquery(query) => match tuple(expr) {
                Some(those) => self.against(those, query, scope),
                None => self.against(std::slice::from_ref(expr), query, scope),
            },
            InTarget::Unnest(array) => self.compare(expr, array, scope),
            InTarget::Table { .. } => self.expr(expr, &Role::Open(NOT_READ), scope),
        }
    }

    /// `a + b`: what is added to a column is a number. Of two values that are added one may be a key.
    fn calculation(&mut self, left: &Expr, right: &Expr, role: &Role, scope: &Scope) {
        let (one, other) = (self.origin(left, scope), self.origin(right, scope));
        for (own, its, expr) in [(&one, &other, left), (&other, &one, right)] {
            let role = match (its, role) {
                (Origin::Column(_) | Origin::Plain, _) => Role::Plain,
                (_, Role::Plain) => Role::Plain,
                _ if is_literal(bare(expr)) && !matches!(own, Origin::Column(_)) => Role::Plain,
                _ => Role::Open(IN_CALCULATION),
            };
            self.expr(expr, &role, scope);
        }
    }

    fn function(&mut self, function: &Function, role: &Role, scope: &Scope) {
        let name = names_of(&function.name).pop().unwrap_or_default();
        if let FunctionArguments::Subquery(query) = &function.args {
            self.query(query, scope, &[]);
        }
        let args = args_of(function);
        let is_own = (self.own_functions)(&name);
        for (at, arg) in args.into_iter().enumerate() {
            let passed = match name.as_str() {
                _ if is_own => Role::Argument(name.clone(), at),
                name if PASSING_ONE.contains(&name) || PASSING_ALL.contains(&name) => {
                    match self.origin_of_function(function, scope) {
                        Origin::Column(column) => Role::Column(column),
                        _ => role.clone(),
                    }
                }
                "sum" | "avg" => {
                    if let Origin::Column(column) = self.origin(arg, scope) {
                        self.columns.calculated(column);
                    }
                    Role::Plain
                }
                name if COUNTING.contains(&name) => Role::Plain,
                _ => Role::Open("it is an argument of a function"),
            };
            self.expr(arg, &passed, scope);
        }
        if let Some(filter) = &function.filter {
            self.expr(filter, &Role::Neutral, scope);
        }
    }
}

/// Without brackets and casts around it.
pub(super) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => bare(inner),
        other => other,
    }
}

pub(super) fn tuple(expr: &Expr) -> Option<&[Expr]> {
    if let Expr::Tuple(those) = expr { Some(those) } else { None }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)))
}

pub(super) fn is_arithmetic(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::PGExp
            | BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseOr
            | BinaryOperator::PGBitwiseXor
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight
    )
}

/// Whether values of a type are never keys.
fn is_plain_type(of: &DataType) -> bool {
    match of {
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => {
            matches!(info, ExactNumberInfo::PrecisionAndScale(_, scale) if *scale != 0)
        }
        DataType::Date
        | DataType::Time(..)
        | DataType::Timestamp(..)
        | DataType::Interval { .. }
        | DataType::Bool
        | DataType::Boolean
        | DataType::Float(_)
        | DataType::Float4
        | DataType::Float8
        | DataType::Real
        | DataType::DoublePrecision
        | DataType::Double(_)
        | DataType::Bytea
        | DataType::Regclass
        | DataType::TsVector
        | DataType::TsQuery => true,
        _ => false,
    }
}

fn args_of(function: &Function) -> Vec<&Expr> {
    match &function.args {
        FunctionArguments::List(list) => list.args.iter().filter_map(arg_of).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn arg_of(arg: &FunctionArg) -> Option<&Expr> {
    let (FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg)) = arg;
    if let FunctionArgExpr::Expr(expr) = arg { Some(expr) } else { None }
}
