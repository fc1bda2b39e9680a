//! Expressions: what they look like, and how they are read.
//!
//! From the weakest to the strongest: OR; AND; NOT; IS, ISNULL, NOTNULL; comparisons; bits and shifts; sums; products;
//! signs. All but NOT and the signs group from the left; comparisons and IS do not follow one another.

use super::function::Function;
use crate::value::Value;

/// An expression with numbered variables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    Variable(usize),
    Call(Function, Vec<Expression>),
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    Is(Box<Expression>, Value),
    /// Conditions with their results, then what holds otherwise.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
}

/// What is wrong, and at which byte.
pub(crate) type Fault = (usize, String);

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Number(Value),
    /// 2^63, which is a number only behind a minus.
    IntegerEnd,
    Variable(&'a str),
    Word(&'a str),
    Symbol(&'static str),
    End,
}

/// The longer ones first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 22] = [
    "<=", ">=", "<>", "!=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "#", "~", "(", ")", ",", "\\",
];

/// How deeply expressions may be nested: enough for any, and far from the end of the stack.
const DEPTH_MAX: u32 = 100;
/// How many tokens an expression may have, as a long chain of operators is a deep tree too.
const TOKENS_MAX: u32 = 1_000;

/// Reads one expression from `text`; `variable` numbers the variables.
pub(crate) fn parse(text: &str, variable: &mut dyn FnMut(&str) -> usize) -> Result<Expression, Fault> {
    let mut parser = Parser { text, at: 0, begin: 0, token: Token::End, variable, depth: 0, tokens: 0 };
    parser.advance()?;
    let expression = parser.or()?;
    match parser.token {
        Token::End => Ok(expression),
        _ => Err(parser.fault("the expression is over here: remove what follows")),
    }
}

struct Parser<'a, 'v> {
    text: &'a str,
    at: usize,
    begin: usize,
    token: Token<'a>,
    variable: &'v mut dyn FnMut(&str) -> usize,
    depth: u32,
    tokens: u32,
}

impl<'a> Parser<'a, '_> {
    fn fault(&self, message: &str) -> Fault {
        (self.begin, message.to_owned())
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<(), Fault> {
        self.tokens += 1;
        if self.tokens > TOKENS_MAX {
            return Err(self.fault("the expression is too long: compute it in several steps"));
        }
        let rest = &self.text[self.at..];
        let blank = rest.len() - rest.trim_start().len();
        let rest = &rest[blank..];
        self.begin = self.at + blank;
        let (token, length) = match rest.chars().next() {
            None => (Token::End, 0),
            Some(c) if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) => {
                self.number(rest)?
            }
            Some(':') => {
                let length = name_length(&rest[1..]);
                if length == 0 || rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
                    return Err(self.fault("a variable's name must follow the colon"));
                }
                (Token::Variable(&rest[1..=length]), length + 1)
            }
            Some(c) if is_name(c) => {
                let length = name_length(rest);
                (Token::Word(&rest[..length]), length)
            }
            Some(c) => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(&"\\") if is_continuation(rest) => {
                    self.at = self.begin + 1;
                    return self.advance();
                }
                Some(&symbol) if symbol != "\\" => (Token::Symbol(symbol), symbol.len()),
                _ => return Err(self.fault(&format!("`{c}` means nothing in an expression"))),
            },
        };
        self.token = token;
        self.at = self.begin + length;
        Ok(())
    }

    fn number(&self, rest: &str) -> Result<(Token<'a>, usize), Fault> {
        let length = number_length(rest);
        let text = &rest[..length];
        let token = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            match text.parse::<u64>() {
                Ok(value) if value == 1 << 63 => Token::IntegerEnd,
                Ok(value) if value < 1 << 63 => Token::Number(Value::Integer(value as i64)),
                _ => return Err(self.fault("this number does not fit into 64 bits: write it with a decimal point")),
            }
        } else {
            match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Token::Number(Value::Double(value)),
                _ => return Err(self.fault("this number does not fit into double precision")),
            }
        };
        Ok((token, length))
    }

    fn symbol(&mut self, symbol: &str) -> Result<bool, Fault> {
        let found = matches!(self.token, Token::Symbol(here) if here == symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn word(&mut self, word: &str) -> Result<bool, Fault> {
        let found = matches!(self.token, Token::Word(here) if here.eq_ignore_ascii_case(word));
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.word(word)? { Ok(()) } else { Err(self.fault(&format!("{word} is expected here"))) }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<(), Fault> {
        if self.symbol(symbol)? { Ok(()) } else { Err(self.fault(&format!("`{symbol}` is expected here"))) }
    }

    fn or(&mut self) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("the expression is nested too deeply"));
        }
        let mut left = self.and()?;
        while self.word("or")? {
            left = Expression::Or(Box::new([left, self.and()?]));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, Fault> {
        let mut left = self.not()?;
        while self.word("and")? {
            left = Expression::And(Box::new([left, self.not()?]));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, Fault> {
        let mut negations = 0u32;
        while self.word("not")? {
            negations += 1;
        }
        let inner = self.is()?;
        // Each one is kept: NOT of what is no boolean is an error at run time, however often.
        Ok((0..negations).fold(inner, |inner, _| call(Function::Not, [inner])))
    }

    fn is(&mut self) -> Result<Expression, Fault> {
        let left = self.comparison()?;
        if self.word("isnull")? {
            return Ok(Expression::Is(Box::new(left), Value::Null));
        }
        if self.word("notnull")? {
            return Ok(call(Function::Not, [Expression::Is(Box::new(left), Value::Null)]));
        }
        if !self.word("is")? {
            return Ok(left);
        }
        let negated = self.word("not")?;
        let value = match () {
            () if self.word("null")? => Value::Null,
            () if self.word("true")? => Value::Boolean(true),
            () if self.word("false")? => Value::Boolean(false),
            () => return Err(self.fault("NULL, TRUE or FALSE is expected behind IS")),
        };
        let is = Expression::Is(Box::new(left), value);
        Ok(if negated { call(Function::Not, [is]) } else { is })
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        let left = self.bits()?;
        let Token::Symbol(symbol @ ("<" | ">" | "=" | "<=" | ">=" | "<>" | "!=")) = self.token else { return Ok(left) };
        self.advance()?;
        let right = self.bits()?;
        Ok(match symbol {
            "<" => call(Function::Less, [left, right]),
            ">" => call(Function::Less, [right, left]),
            "<=" => call(Function::LessOrEqual, [left, right]),
            ">=" => call(Function::LessOrEqual, [right, left]),
            "=" => call(Function::Equal, [left, right]),
            _ => call(Function::NotEqual, [left, right]),
        })
    }

    fn bits(&mut self) -> Result<Expression, Fault> {
        let mut left = self.sum()?;
        loop {
            let function = match self.token {
                Token::Symbol("|") => Function::BitOr,
                Token::Symbol("#") => Function::BitXor,
                Token::Symbol("&") => Function::BitAnd,
                Token::Symbol("<<") => Function::ShiftLeft,
                Token::Symbol(">>") => Function::ShiftRight,
                _ => return Ok(left),
            };
            self.advance()?;
            left = call(function, [left, self.sum()?]);
        }
    }

    fn sum(&mut self) -> Result<Expression, Fault> {
        let mut left = self.product()?;
        loop {
            let function = match self.token {
                Token::Symbol("+") => Function::Add,
                Token::Symbol("-") => Function::Subtract,
                _ => return Ok(left),
            };
            self.advance()?;
            left = call(function, [left, self.product()?]);
        }
    }

    fn product(&mut self) -> Result<Expression, Fault> {
        let mut left = self.sign()?;
        loop {
            let function = match self.token {
                Token::Symbol("*") => Function::Multiply,
                Token::Symbol("/") => Function::Divide,
                Token::Symbol("%") => Function::Modulo,
                _ => return Ok(left),
            };
            self.advance()?;
            left = call(function, [left, self.sign()?]);
        }
    }

    fn sign(&mut self) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("the expression is nested too deeply"));
        }
        let zero = Expression::Constant(Value::Integer(0));
        let expression = if self.symbol("+")? {
            self.sign()?
        } else if self.symbol("-")? {
            if self.token == Token::IntegerEnd {
                self.advance()?;
                Expression::Constant(Value::Integer(i64::MIN))
            } else {
                call(Function::Subtract, [zero, self.sign()?])
            }
        } else if self.symbol("~")? {
            // Weaker than sums: ~1 + 2 is ~(1 + 2), as in pgbench's grammar.
            call(Function::BitXor, [Expression::Constant(Value::Integer(-1)), self.sum()?])
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn primary(&mut self) -> Result<Expression, Fault> {
        match self.token.clone() {
            Token::Number(value) => self.constant(value),
            Token::IntegerEnd => {
                Err(self.fault("this number does not fit into 64 bits: write it with a decimal point"))
            }
            Token::Variable(name) => {
                self.advance()?;
                Ok(Expression::Variable((self.variable)(name)))
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.or()?;
                self.expect_symbol(")")?;
                Ok(inner)
            }
            Token::Word(word) if word.eq_ignore_ascii_case("null") => self.constant(Value::Null),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => self.constant(Value::Boolean(true)),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => self.constant(Value::Boolean(false)),
            Token::Word(word) if word.eq_ignore_ascii_case("case") => self.case(),
            Token::Word(word) => self.function(word),
            Token::End => Err(self.fault("an expression is expected here")),
            Token::Symbol(symbol) => Err(self.fault(&format!("a value is expected here, not `{symbol}`"))),
        }
    }

    fn constant(&mut self, value: Value) -> Result<Expression, Fault> {
        self.advance()?;
        Ok(Expression::Constant(value))
    }

    fn case(&mut self) -> Result<Expression, Fault> {
        self.advance()?;
        let mut branches = Vec::new();
        while self.word("when")? {
            let condition = self.or()?;
            self.expect_word("THEN")?;
            branches.push((condition, self.or()?));
        }
        if branches.is_empty() {
            return Err(self.fault("WHEN is expected behind CASE"));
        }
        let otherwise = if self.word("else")? { self.or()? } else { Expression::Constant(Value::Null) };
        self.expect_word("END")?;
        Ok(Expression::Case(branches, Box::new(otherwise)))
    }

    fn function(&mut self, name: &str) -> Result<Expression, Fault> {
        let begin = self.begin;
        self.advance()?;
        if !self.symbol("(")? {
            return Err((
                begin,
                format!("`{name}` is no value: write `:{name}` for a variable, `{name}(...)` for a function"),
            ));
        }
        let mut arguments = Vec::new();
        if !self.symbol(")")? {
            loop {
                arguments.push(self.or()?);
                if !self.symbol(",")? {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        let function = Function::named(name, arguments.len()).map_err(|message| (begin, message))?;
        if function.takes_seed() == Some(arguments.len()) {
            arguments.push(Expression::Variable((self.variable)("default_seed")));
        }
        Ok(Expression::Call(function, arguments))
    }
}

fn call<const N: usize>(function: Function, arguments: [Expression; N]) -> Expression {
    Expression::Call(function, arguments.into())
}

/// Whether a character may be part of a variable's name.
pub(crate) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// How many bytes of a name the text begins with.
pub(crate) fn name_length(text: &str) -> usize {
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

fn is_continuation(rest: &str) -> bool {
    rest[1..].starts_with('\n') || rest[1..].starts_with("\r\n")
}

fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    if text[length..].starts_with('.') {
        length += 1 + digits(length + 1);
    }
    let exponent = &text[length..];
    if exponent.starts_with(['e', 'E']) {
        let sign = usize::from(exponent[1..].starts_with(['+', '-']));
        let count = digits(length + 1 + sign);
        if count > 0 {
            length += 1 + sign + count;
        }
    }
    length
}
