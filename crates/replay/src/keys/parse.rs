//! Statements as syntax trees, by `sqlparser`, in bounded time and memory.
//!
//! Why this parser: it is safe Rust, widely used, and knows PostgreSQL's dialect. PostgreSQL's own grammar (`pg_query`) is C, needs libclang to build,
//! and would read hostile text in the same process. Asking the server (PREPARE, EXPLAIN) costs a round trip for each shape and
//! gives types and plans, where a comparison is no longer where it stood in the text. What this parser cannot read is not
//! decided: that costs an exchange, and never changes a value.
//!
//! What bounds it: letters, words and the depth of brackets of a text; the depth of expressions; and the steps of the parser, which goes back and tries again. The
//! dialect is asked at each expression, so it counts the steps there.

use std::any::TypeId;
use std::cell::Cell;
use std::ops::Range;

use sqlparser::ast::{Expr, Statement};
use sqlparser::dialect::{BindPlaceholderStyle, Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// Bytes of a text: longer ones are bulk inserts, of which nothing is read.
const BYTES_MAX: usize = 256 << 10;
/// Words, signs and spaces of a text. A chain of operators is as deep a tree as it has words.
const TOKENS_MAX: usize = 40_000;
/// Operators and other words between two commas or brackets: a chain of them is a tree of this depth, which is walked and dropped by recursion.
const CHAIN_MAX: usize = 2_000;
/// Brackets within brackets.
const DEPTH_MAX: usize = 24;
/// Expressions and queries within each other.
const RECURSION_MAX: usize = 40;
/// Steps for each word: an ordinary statement has fewer than three.
const STEPS_PER_TOKEN: u64 = 60;
/// The parser recurses deeply in builds without optimization.
const STACK_BYTES: usize = 64 << 20;

/// A text with the statements in it, in order; one that could not be read is none.
pub(crate) struct Parsed {
    pub statements: Vec<Option<Statement>>,
    /// Where each of them begins and ends.
    spans: Vec<(Location, Location)>,
    lines: Vec<usize>,
}

impl Parsed {
    /// The bytes of `text` that are a statement of it.
    pub(crate) fn range(&self, text: &str, statement: usize) -> Range<usize> {
        let (begin, end) = self.spans[statement];
        self.byte_of(text, begin).unwrap_or(0)..self.byte_of(text, end).unwrap_or(text.len())
    }

    /// The byte of `text` where a value begins; none where the parser does not say.
    pub(crate) fn byte_of(&self, text: &str, at: Location) -> Option<usize> {
        let begin = *self.lines.get(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
        let letters = usize::try_from(at.column).ok()?.checked_sub(1)?;
        let line = &text[begin..];
        if line.len() >= letters && line.as_bytes()[..letters].is_ascii() {
            return Some(begin + letters);
        }
        let mut bytes = line.char_indices().map(|(byte, _)| byte).chain([line.len()]);
        bytes.nth(letters).map(|byte| begin + byte)
    }
}

/// Runs work that parses, on a stack that is deep enough for it.
pub(crate) fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("texts".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// The statements of a text; none if it is too long, too deep, or not made of words.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    if text.len() > BYTES_MAX {
        return None;
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    if tokens.len() > TOKENS_MAX {
        return None;
    }
    let (mut statements, mut spans) = (Vec::new(), Vec::new());
    for tokens in tokens.split(|token| token.token == Token::SemiColon) {
        let mut words = tokens.iter().filter(|token| !is_blank(&token.token));
        let Some(first) = words.next() else { continue };
        let last = words.next_back().unwrap_or(first);
        spans.push((first.span.start, last.span.end));
        statements.push(if is_shallow(tokens) { statement(tokens) } else { None });
    }
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    let lines = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
    Some(Parsed { statements, spans, lines })
}

fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_) | Token::EOF)
}

/// Whether brackets, and chains of words between them, are no deeper than what is walked by recursion.
fn is_shallow(tokens: &[TokenWithSpan]) -> bool {
    let (mut depth, mut chain) = (0_usize, 0);
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma => chain = 0,
            ref other if !is_blank(other) => chain += 1,
            _ => (),
        }
        if depth > DEPTH_MAX || chain > CHAIN_MAX {
            return false;
        }
    }
    true
}

fn statement(tokens: &[TokenWithSpan]) -> Option<Statement> {
    let dialect = Bounded { of: PostgreSqlDialect {}, left: Cell::new(STEPS_PER_TOKEN * (tokens.len() as u64 + 10)) };
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens.to_vec());
    let found = parser.parse_statement().ok()?;
    (parser.peek_token_ref().token == Token::EOF).then_some(found)
}

/// PostgreSQL's dialect, for so many steps.
#[derive(Debug)]
struct Bounded {
    of: PostgreSqlDialect,
    left: Cell<u64>,
}

impl Bounded {
    /// Takes a step. The parser goes back and tries something else after any error but this one.
    fn step(&self) -> Result<(), ParserError> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if left == 0 { Err(ParserError::RecursionLimitExceeded) } else { Ok(()) }
    }
}

/// Asks PostgreSQL's dialect.
macro_rules! delegate {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result { self.of.$name($($argument),*) })*
    };
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        self.of.dialect()
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.step() {
            Ok(()) => self.of.parse_prefix(parser),
            Err(error) => Some(Err(error)),
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match self.step() {
            Ok(()) => self.of.get_next_precedence(parser),
            Err(error) => Some(Err(error)),
        }
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        match self.step() {
            Ok(()) => self.of.parse_statement(parser),
            Err(error) => Some(Err(error)),
        }
    }

    delegate! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        ordered_bind_placeholder_style() -> Option<BindPlaceholderStyle>;
        is_delimited_identifier_start(letter: char) -> bool;
        is_identifier_start(letter: char) -> bool;
        is_identifier_part(letter: char) -> bool;
        is_custom_operator_part(letter: char) -> bool;
        is_reserved_for_identifier(keyword: Keyword) -> bool;
        is_table_alias(keyword: &Keyword, parser: &mut Parser) -> bool;
        prec_value(precedence: Precedence) -> u8;
    }

    delegate! {
        supports_cte_materialization() -> bool;
        supports_unicode_string_literal() -> bool;
        supports_string_literal_column_alias(explicit: bool) -> bool;
        supports_string_literal_table_alias(explicit: bool) -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        supports_drop_group() -> bool;
        supports_alter_user_as_alter_role() -> bool;
        supports_create_group() -> bool;
        supports_create_role_if_not_exists() -> bool;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_sql_option_without_value() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_exclude_constraint() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_tilde_like_match_operator() -> bool;
        supports_comparison_in_between_low_bound() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_named_fn_args_with_expr_name() -> bool;
        supports_named_fn_args_with_assignment_operator() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_copy_from_stdin_data() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_non_decimal_integer_literals() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_order_by_using_operator() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_left_associative_joins_without_parens() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        is_interval_qualifier(kw: Keyword) -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        is_custom_type_typed_string(firstkeyword: Keyword, qualified: bool) -> bool;
        supports_aliased_function_args() -> bool;
        supports_comment_optimizer_hint() -> bool;
        supports_add_column_if_not_exists() -> bool;
        supports_attach_partition_of() -> bool;
        supports_detach_partition_of() -> bool;
        supports_table_inheritance_markers() -> bool;
        supports_column_generic_options() -> bool;
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_clock::thread_cpu_ns;

    use super::*;

    fn statements(text: &str) -> Vec<bool> {
        on_deep_stack(|| {
            parse(text).map_or_else(Vec::new, |parsed| parsed.statements.iter().map(Option::is_some).collect())
        })
        .unwrap()
    }

    #[test]
    fn statements_are_read_each() {
        assert_eq!(statements("SELECT 1; SELECT FROM WHERE; ;DELETE FROM t"), [true, false, true]);
        assert!(statements("").is_empty());
    }

    #[test]
    fn values_are_found_by_line_and_column() {
        let text = "SELECT 'ü',\n  7 -- é\n, 'ö', 8";
        let parsed = parse(text).unwrap();
        let at = |line, column| parsed.byte_of(text, Location { line, column });
        assert_eq!(at(2, 3).map(|at| &text[at..=at]), Some("7"));
        assert_eq!(at(3, 8).map(|at| &text[at..=at]), Some("8"));
        assert_eq!((at(0, 1), at(9, 1), at(1, 0)), (None, None, None));
    }

    #[test]
    fn hostile_texts_take_no_more_time_than_long_ones() {
        let deep = [
            "(",
            "f(",
            "f(a=>",
            "case ",
            "case-",
            "not ",
            "cast(",
            "(select ",
            "a in (",
            "array[",
            "(a,",
            "exists(select ",
            "-(",
            "interval ",
        ];
        for one in deep {
            let texts = [10, 24, 400].map(|times| format!("SELECT {}1", one.repeat(times)));
            let from = [10, 24, 400].map(|times| format!("SELECT * FROM {}t", one.repeat(times)));
            for text in texts.iter().chain(&from) {
                let took_ns = on_deep_stack(|| {
                    let begin_ns = thread_cpu_ns();
                    parse(text);
                    thread_cpu_ns() - begin_ns
                });
                assert!(took_ns.unwrap() < 1_000_000_000, "{} times {one}", text.len() / one.len());
            }
        }
    }

    #[test]
    fn chains_are_walked_as_far_as_the_stack_allows() {
        for one in ["a or ", "a + ", "- ", "a between 1 and ", "a || "] {
            statements(&format!("SELECT 1 WHERE {}b", one.repeat(100_000 / one.len())));
            statements(&format!("SELECT 1 WHERE {}b", one.repeat(400)));
        }
        statements(&format!("SELECT 1{}", "::int".repeat(600)));
        statements(&format!("SELECT 1 {}", "UNION SELECT 1 ".repeat(600)));
        statements(&"é'".repeat(10_000));
    }
}
