//! What an expression is worth.

use super::expression::Expression;
use super::function::Function;
use crate::hash;
use crate::keys::{self, Zipf};
use crate::random::Random;
use crate::value::{Value, Variable};

/// What an expression can see and change.
pub(crate) struct Scope<'a> {
    pub variables: &'a [Variable],
    pub random: &'a mut Random,
    /// The Zipf law used last: setting it up costs more than drawing from it.
    pub zipf: &'a mut Option<Zipf>,
}

/// A width below this would redraw too often (pgbench's limit).
const GAUSSIAN_WIDTH_MIN: f64 = 2.0;
/// The exponents that pgbench takes.
const ZIPFIAN_EXPONENTS: std::ops::RangeInclusive<f64> = 1.001..=1000.0;
/// No function but `least` and `greatest` takes more.
const ARGUMENTS_MAX: usize = 3;

/// Errors of evaluation: a sentence, or the number of a variable that was never set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Undefined(usize),
    Malformed(usize),
    Message(String),
}

impl From<String> for Trouble {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

type Result<T = Value> = std::result::Result<T, Trouble>;

impl Scope<'_> {
    pub fn evaluate(&mut self, expression: &Expression) -> Result {
        match expression {
            Expression::Constant(value) => Ok(*value),
            Expression::Variable(number) => self.variable(*number),
            Expression::Call(function, arguments) => self.call(*function, arguments),
            Expression::And(sides) => self.junction(sides, false),
            Expression::Or(sides) => self.junction(sides, true),
            Expression::Is(inner, value) => Ok(Value::Boolean(self.evaluate(inner)? == *value)),
            Expression::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if self.evaluate(condition)?.is_true() {
                        return self.evaluate(result);
                    }
                }
                self.evaluate(otherwise)
            }
        }
    }

    fn variable(&self, number: usize) -> Result {
        match &self.variables[number] {
            Variable::Undefined => Err(Trouble::Undefined(number)),
            Variable::Value(value) => Ok(*value),
            Variable::Text(text) => Value::from_text(text).ok_or(Trouble::Malformed(number)),
        }
    }

    /// AND and OR. The second side is not looked at when the first decides; unlike in SQL, a NULL on the first side
    /// decides too (observed with pgbench 18.6: `null and false` is NULL).
    fn junction(&mut self, sides: &[Expression; 2], deciding: bool) -> Result {
        for side in sides {
            match self.evaluate(side)? {
                Value::Null => return Ok(Value::Null),
                value if value.boolean()? == deciding => return Ok(Value::Boolean(deciding)),
                _ => {}
            }
        }
        Ok(Value::Boolean(!deciding))
    }

    fn call(&mut self, function: Function, arguments: &[Expression]) -> Result {
        if matches!(function, Function::Least | Function::Greatest) {
            return self.extreme(function, arguments);
        }
        let mut values = [Value::Null; ARGUMENTS_MAX];
        let mut null = false;
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.evaluate(argument)?;
            null |= *value == Value::Null;
        }
        if null {
            return Ok(Value::Null);
        }
        let [a, b, c] = values;
        match function {
            Function::Random => self.uniform(a.integer()?, b.integer()?),
            Function::RandomExponential | Function::RandomGaussian | Function::RandomZipfian => {
                self.shaped(function, a.integer()?, b.integer()?, c.double()?)
            }
            Function::HashFnv1a => Ok(Value::Integer(hash::fnv1a(a.integer()?, b.integer()?))),
            Function::HashMurmur2 => Ok(Value::Integer(hash::murmur2(a.integer()?, b.integer()?))),
            Function::Permute if b.integer()? <= 0 => Err(sentence("permute needs a size above 0")),
            Function::Permute => Ok(Value::Integer(hash::permute(a.integer()?, b.integer()?, c.integer()?))),
            _ => plain(function, a, b),
        }
    }

    fn extreme(&mut self, function: Function, arguments: &[Expression]) -> Result {
        let mut found: Option<Value> = None;
        let mut null = false;
        for argument in arguments {
            let value = self.evaluate(argument)?;
            if value == Value::Null {
                null = true;
                continue;
            }
            found = Some(match found {
                None => numeric(value)?,
                Some(best) => better(function, best, numeric(value)?)?,
            });
        }
        Ok(if null { Value::Null } else { found.unwrap_or(Value::Null) })
    }

    fn uniform(&mut self, min: i64, max: i64) -> Result {
        check_range(min, max)?;
        Ok(Value::Integer(self.random.between(min, max)))
    }

    fn shaped(&mut self, function: Function, min: i64, max: i64, shape: f64) -> Result {
        check_range(min, max)?;
        let value = match function {
            Function::RandomExponential if shape > 0.0 => keys::exponential(self.random, min, max, shape),
            Function::RandomGaussian if shape >= GAUSSIAN_WIDTH_MIN => keys::gaussian(self.random, min, max, shape),
            Function::RandomZipfian if ZIPFIAN_EXPONENTS.contains(&shape) => self.zipfian(min, max, shape),
            Function::RandomExponential => return Err(sentence("random_exponential needs a parameter above 0")),
            Function::RandomGaussian => return Err(sentence("random_gaussian needs a parameter of at least 2")),
            _ => return Err(sentence("random_zipfian needs a parameter from 1.001 to 1000")),
        };
        Ok(Value::Integer(value))
    }

    fn zipfian(&mut self, min: i64, max: i64, exponent: f64) -> i64 {
        let count = (max - min) as u64 + 1;
        let law = match *self.zipf {
            Some(law) if law.is(count, exponent) => law,
            _ => *self.zipf.insert(Zipf::new(count, exponent)),
        };
        min + (law.draw(self.random) - 1) as i64
    }
}

fn sentence(text: &str) -> Trouble {
    Trouble::Message(text.to_owned())
}

fn check_range(min: i64, max: i64) -> Result<()> {
    if min > max {
        return Err(Trouble::Message(format!("the range from {min} to {max} is empty")));
    }
    match max.checked_sub(min).and_then(|size| size.checked_add(1)) {
        Some(_) => Ok(()),
        None => Err(Trouble::Message(format!("the range from {min} to {max} has more values than 64 bits count"))),
    }
}

fn numeric(value: Value) -> Result {
    match value {
        Value::Double(_) => Ok(value),
        other => Ok(Value::Integer(other.integer()?)),
    }
}

/// Of two numbers the better one; a double makes both doubles.
fn better(function: Function, a: Value, b: Value) -> Result {
    let least = function == Function::Least;
    Ok(match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(if least { a.min(b) } else { a.max(b) }),
        _ => {
            let (a, b) = (a.double()?, b.double()?);
            Value::Double(if least { a.min(b) } else { a.max(b) })
        }
    })
}

/// Functions and operators that need nothing but their arguments.
fn plain(function: Function, a: Value, b: Value) -> Result {
    use Function as F;
    let doubles = matches!(a, Value::Double(_)) || matches!(b, Value::Double(_));
    match function {
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Equal | F::NotEqual | F::Less | F::LessOrEqual
            if doubles =>
        {
            Ok(of_doubles(function, a.double()?, b.double()?))
        }
        F::Not => Ok(Value::Boolean(!a.boolean()?)),
        F::Debug => Ok(a),
        F::Pi => Ok(Value::Double(core::f64::consts::PI)),
        F::Int => Ok(Value::Integer(a.integer()?)),
        F::Double => Ok(Value::Double(a.double()?)),
        F::Exp => Ok(Value::Double(libm::exp(a.double()?))),
        F::Ln => Ok(Value::Double(libm::log(a.double()?))),
        F::Sqrt => Ok(Value::Double(libm::sqrt(a.double()?))),
        F::Power => Ok(Value::Double(libm::pow(a.double()?, b.double()?))),
        F::Abs => match a {
            Value::Double(value) => Ok(Value::Double(value.abs())),
            other => other.integer()?.checked_abs().map(Value::Integer).ok_or_else(|| out_of_range("abs")),
        },
        _ => of_integers(function, a.integer()?, b.integer()?),
    }
}

fn of_doubles(function: Function, a: f64, b: f64) -> Value {
    match function {
        Function::Add => Value::Double(a + b),
        Function::Subtract => Value::Double(a - b),
        Function::Multiply => Value::Double(a * b),
        Function::Divide => Value::Double(a / b),
        Function::Equal => Value::Boolean(a == b),
        Function::NotEqual => Value::Boolean(a != b),
        Function::Less => Value::Boolean(a < b),
        _ => Value::Boolean(a <= b),
    }
}

fn out_of_range(what: &str) -> Trouble {
    Trouble::Message(format!("the result of {what} does not fit into 64 bits"))
}

fn of_integers(function: Function, a: i64, b: i64) -> Result {
    use Function as F;
    let (result, what) = match function {
        F::Add => (a.checked_add(b), "+"),
        F::Subtract => (a.checked_sub(b), "-"),
        F::Multiply => (a.checked_mul(b), "*"),
        F::Divide | F::Modulo if b == 0 => return Err(sentence("division by zero")),
        F::Divide => (a.checked_div(b), "/"),
        // -1 divides everything; the machine's instruction would overflow for the smallest number.
        F::Modulo => (Some(a.wrapping_rem(b)), "%"),
        F::BitAnd => (Some(a & b), "&"),
        F::BitOr => (Some(a | b), "|"),
        F::BitXor => (Some(a ^ b), "#"),
        F::ShiftLeft => (Some(a.wrapping_shl(b as u32)), "<<"),
        F::ShiftRight => (Some(a.wrapping_shr(b as u32)), ">>"),
        F::Equal => return Ok(Value::Boolean(a == b)),
        F::NotEqual => return Ok(Value::Boolean(a != b)),
        F::Less => return Ok(Value::Boolean(a < b)),
        _ => return Ok(Value::Boolean(a <= b)),
    };
    result.map(Value::Integer).ok_or_else(|| out_of_range(what))
}
