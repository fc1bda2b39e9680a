//! The names of functions and operators.

/// What can be called; operators are functions with another way of writing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Not,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// A function's name, how many arguments it takes at least and at most, and what it is.
const NAMES: [(&str, usize, usize, Function); 21] = [
    ("abs", 1, 1, Function::Abs),
    ("debug", 1, 1, Function::Debug),
    ("double", 1, 1, Function::Double),
    ("exp", 1, 1, Function::Exp),
    ("greatest", 1, usize::MAX, Function::Greatest),
    ("hash", 1, 2, Function::HashMurmur2),
    ("hash_fnv1a", 1, 2, Function::HashFnv1a),
    ("hash_murmur2", 1, 2, Function::HashMurmur2),
    ("int", 1, 1, Function::Int),
    ("least", 1, usize::MAX, Function::Least),
    ("ln", 1, 1, Function::Ln),
    ("mod", 2, 2, Function::Modulo),
    ("permute", 2, 3, Function::Permute),
    ("pi", 0, 0, Function::Pi),
    ("pow", 2, 2, Function::Power),
    ("power", 2, 2, Function::Power),
    ("random", 2, 2, Function::Random),
    ("random_exponential", 3, 3, Function::RandomExponential),
    ("random_gaussian", 3, 3, Function::RandomGaussian),
    ("random_zipfian", 3, 3, Function::RandomZipfian),
    ("sqrt", 1, 1, Function::Sqrt),
];

impl Function {
    /// The function of this name, in any case, if it takes this many arguments; otherwise a sentence.
    pub fn named(name: &str, arguments: usize) -> Result<Self, String> {
        let found = NAMES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
        let Some(&(known, min, max, function)) = found else {
            return Err(format!("there is no function `{name}`"));
        };
        if (min..=max).contains(&arguments) {
            return Ok(function);
        }
        let wanted = match (min, max) {
            (min, usize::MAX) => format!("at least {min}"),
            (min, max) if min == max => min.to_string(),
            (min, max) => format!("{min} or {max}"),
        };
        Err(format!("`{known}` takes {wanted} argument(s), and here are {arguments}"))
    }

    /// Whether a third or second argument that is left out is `:default_seed`.
    pub fn takes_seed(self) -> Option<usize> {
        match self {
            Self::HashFnv1a | Self::HashMurmur2 => Some(1),
            Self::Permute => Some(2),
            _ => None,
        }
    }
}
