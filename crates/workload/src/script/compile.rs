//! From the pieces of a script to commands.

use super::command::*;
use super::expression::{self, Expression, name_length};
use super::source::{Piece, Source, position};
use crate::error::ScriptError;
use crate::template::{PARAMETERS_MAX, Template};
use std::ops::Range;

/// Collects the scripts of a workload: their statements are numbered through, their variables are common.
#[derive(Debug, Default)]
pub struct Compiler {
    pub(crate) compiled: Compiled,
    pub(crate) statements: Vec<Template>,
}

/// Checks one script, and returns its statements.
///
/// # Errors
/// What is wrong with it first, with line and column.
pub fn compile(name: &str, text: &str) -> Result<Vec<Template>, ScriptError> {
    let mut compiler = Compiler::default();
    compiler.add(name, text)?;
    Ok(compiler.statements)
}

impl Compiler {
    /// Adds a script.
    ///
    /// # Errors
    /// What is wrong with it first, with line and column.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), ScriptError> {
        let mut reader = Reader { compiler: self, text, commands: Vec::new(), open: Vec::new() };
        let body = reader.read().and_then(|()| reader.finish(name));
        match body {
            Ok(body) => self.compiled.scripts.push(body),
            Err((offset, message)) => {
                return Err(ScriptError { script: name.to_owned(), at: position(text, offset), message });
            }
        }
        Ok(())
    }

    /// The number of a variable; a new one if it has none yet.
    pub(crate) fn variable(&mut self, name: &str) -> usize {
        let next = self.compiled.variables.len();
        match self.compiled.variables.get(name) {
            Some(&number) => number,
            None => {
                self.compiled.variables.insert(name.to_owned(), next);
                next
            }
        }
    }
}

type Fault = expression::Fault;

/// An `\if` that waits for its `\endif`.
struct Open {
    at: usize,
    /// The jump to fill in with where the next branch begins.
    pending: Option<usize>,
    /// The jumps to fill in with where the whole ends.
    ends: Vec<usize>,
}

struct Reader<'a, 'c> {
    compiler: &'c mut Compiler,
    text: &'a str,
    commands: Vec<Located>,
    open: Vec<Open>,
}

/// The rest of a command's line, word by word.
struct Words<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..self.end];
        let begin = self.at + rest.len() - rest.trim_start().len();
        let word = &self.text[begin..self.end];
        let length = word.find(|c: char| c.is_whitespace()).unwrap_or(word.len());
        self.at = begin + length;
        (length > 0).then(|| (begin, &word[..length]))
    }

    fn over(&mut self, command: &str) -> Result<(), Fault> {
        match self.next() {
            None => Ok(()),
            Some((at, _)) => Err((at, format!("\\{command} is complete here: remove what follows"))),
        }
    }
}

impl Reader<'_, '_> {
    fn read(&mut self) -> Result<(), Fault> {
        let mut source = Source::new(self.text);
        loop {
            match source.next().map_err(|open| (open.at, format!("this {} is not closed", open.what)))? {
                None => return Ok(()),
                Some(Piece::Sql { at, text }) => self.sql(at, &text)?,
                Some(Piece::Meta { at, name, rest }) => self.meta(at, name, rest)?,
            }
        }
    }

    fn finish(&mut self, name: &str) -> Result<Body, Fault> {
        if let Some(open) = self.open.last() {
            return Err((open.at, "this \\if has no \\endif".to_owned()));
        }
        if self.commands.is_empty() {
            return Err((0, "the script has neither a statement nor a command".to_owned()));
        }
        let end = position(self.text, self.text.trim_end().len());
        Ok(Body { name: name.to_owned(), commands: std::mem::take(&mut self.commands), end })
    }

    fn push(&mut self, at: usize, command: Command) -> usize {
        self.commands.push(Located { at: position(self.text, at), command });
        self.commands.len() - 1
    }

    fn sql(&mut self, at: usize, text: &str) -> Result<(), Fault> {
        let template = parameters(text);
        if template.names().len() > PARAMETERS_MAX {
            return Err((at, format!("the statement has more than {PARAMETERS_MAX} parameters")));
        }
        let variables = template.names().map(|name| self.compiler.variable(name)).collect();
        let statement = self.compiler.statements.len() as u32;
        self.compiler.statements.push(template);
        self.push(at, Command::Sql { statement, variables, keep: None });
        Ok(())
    }

    fn meta(&mut self, at: usize, name: Range<usize>, rest: Range<usize>) -> Result<(), Fault> {
        let mut words = Words { text: self.text, at: rest.start, end: rest.end };
        let written = &self.text[name];
        // pgbench takes them in any case.
        let lower = written.to_ascii_lowercase();
        let command = lower.as_str();
        match command {
            "set" => return self.set(at, words),
            "sleep" => return self.sleep(at, words),
            "if" => return self.begin_if(at, rest),
            "elif" => return self.elif(at, rest),
            "gset" | "aset" => return self.keep(at, command, words),
            "else" => self.or_else(at)?,
            "endif" => self.end_if(at)?,
            "startpipeline" => _ = self.push(at, Command::StartPipeline),
            "syncpipeline" => _ = self.push(at, Command::SyncPipeline),
            "endpipeline" => _ = self.push(at, Command::EndPipeline),
            "shell" | "setshell" => {
                return Err((
                    at,
                    format!(
                        "\\{command} is refused: it would start a process in the middle of a measured transaction; \
                         compute with \\set, or let the server do it and take the result with \\gset"
                    ),
                ));
            }
            "setrandom" => {
                return Err((
                    at,
                    "\\setrandom ended with PostgreSQL 9.6: write `\\set NAME random(FROM, TO)`".to_owned(),
                ));
            }
            "" => return Err((at, "a command's name must follow the backslash".to_owned())),
            _ => return Err((at, format!("there is no command \\{written}"))),
        }
        words.over(command)
    }

    fn expression(&mut self, range: Range<usize>) -> Result<Expression, Fault> {
        let compiler = &mut *self.compiler;
        expression::parse(&self.text[range.clone()], &mut |name| compiler.variable(name))
            .map_err(|(offset, message)| (range.start + offset, message))
    }

    fn set(&mut self, at: usize, mut words: Words<'_>) -> Result<(), Fault> {
        let (name_at, name) = words.next().ok_or((at, "\\set needs a variable's name and an expression".to_owned()))?;
        if name_length(name) != name.len() {
            return Err((name_at, format!("`{name}` is no name of a variable: use letters, digits and underscores")));
        }
        let expression = self.expression(words.at..words.end)?;
        let variable = self.compiler.variable(name);
        self.push(at, Command::Set { variable, expression });
        Ok(())
    }

    fn sleep(&mut self, at: usize, mut words: Words<'_>) -> Result<(), Fault> {
        let (amount_at, amount) = words.next().ok_or((at, "\\sleep needs a number or a variable".to_owned()))?;
        let digits = amount.find(|c: char| !c.is_ascii_digit()).unwrap_or(amount.len());
        let variable = amount.strip_prefix(':').filter(|name| !name.is_empty() && name_length(name) == name.len());
        // The unit may follow the number without a space, as in 10ms.
        let unit = match &amount[digits..] {
            "" => words.next(),
            _ if variable.is_some() => words.next(),
            unit => Some((amount_at + digits, unit)),
        };
        let unit_ns = match unit {
            None => 1_000_000_000,
            Some((at, word)) => {
                unit_ns(word).ok_or((at, format!("`{word}` is no unit of \\sleep: use us, ms or s")))?
            }
        };
        let fault = || (amount_at, format!("`{amount}` is no time: write a whole number or a variable"));
        let sleep = match variable {
            Some(name) => Sleep::Variable { variable: self.compiler.variable(name), unit_ns },
            None => {
                let count: u64 = amount[..digits].parse().map_err(|_| fault())?;
                Sleep::Constant { ns: count.checked_mul(unit_ns).ok_or_else(fault)? }
            }
        };
        words.over("sleep")?;
        self.push(at, Command::Sleep(sleep));
        Ok(())
    }

    fn begin_if(&mut self, at: usize, rest: Range<usize>) -> Result<(), Fault> {
        let condition = self.expression(rest)?;
        let pending = self.push(at, Command::JumpUnless { condition, target: usize::MAX });
        self.open.push(Open { at, pending: Some(pending), ends: Vec::new() });
        Ok(())
    }

    /// Ends the branch before: it jumps to the end, and the condition before it jumps to here.
    fn next_branch(&mut self, at: usize, command: &str) -> Result<(), Fault> {
        let jump = self.push(at, Command::Jump(usize::MAX));
        let Some(open) = self.open.last_mut() else {
            return Err((at, format!("this \\{command} has no \\if")));
        };
        let Some(pending) = open.pending.take() else {
            return Err((at, format!("this \\{command} comes after \\else")));
        };
        open.ends.push(jump);
        self.land(pending);
        Ok(())
    }

    fn land(&mut self, jump: usize) {
        let here = self.commands.len();
        match &mut self.commands[jump].command {
            Command::Jump(target) | Command::JumpUnless { target, .. } => *target = here,
            other => unreachable!("only jumps wait for a target: {other:?}"),
        }
    }

    fn elif(&mut self, at: usize, rest: Range<usize>) -> Result<(), Fault> {
        self.next_branch(at, "elif")?;
        let condition = self.expression(rest)?;
        let pending = self.push(at, Command::JumpUnless { condition, target: usize::MAX });
        self.open.last_mut().expect("a branch was begun").pending = Some(pending);
        Ok(())
    }

    fn or_else(&mut self, at: usize) -> Result<(), Fault> {
        self.next_branch(at, "else")
    }

    fn end_if(&mut self, at: usize) -> Result<(), Fault> {
        let open = self.open.pop().ok_or((at, "this \\endif has no \\if".to_owned()))?;
        for jump in open.pending.into_iter().chain(open.ends) {
            self.land(jump);
        }
        Ok(())
    }

    fn keep(&mut self, at: usize, command: &str, mut words: Words<'_>) -> Result<(), Fault> {
        let prefix = words.next().map_or("", |(_, prefix)| prefix).to_owned();
        words.over(command)?;
        match self.commands.last_mut() {
            Some(Located { command: Command::Sql { keep: keep @ None, .. }, .. }) => {
                *keep = Some(Keep { prefix, each: command == "aset" });
                Ok(())
            }
            _ => Err((at, format!("\\{command} must follow a statement"))),
        }
    }
}

fn unit_ns(word: &str) -> Option<u64> {
    match word.to_ascii_lowercase().as_str() {
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    }
}

/// A statement's text with its `:name`s as parameters. As in pgbench they count everywhere, in strings too; `::` is a
/// cast, and a name does not begin with a digit, so that `12:30` stays a time.
fn parameters(text: &str) -> Template {
    let mut template = Template::default();
    let mut rest = text;
    while let Some(colon) = rest.find(':') {
        let after = &rest[colon + 1..];
        let length = name_length(after);
        let colons = after.len() - after.trim_start_matches(':').len();
        if colons > 0 {
            template = template.text(&rest[..colon + 1 + colons]);
            rest = &after[colons..];
        } else if length == 0 || after.starts_with(|c: char| c.is_ascii_digit()) {
            template = template.text(&rest[..=colon]);
            rest = after;
        } else {
            template = template.text(&rest[..colon]).parameter(&after[..length]);
            rest = &after[length..];
        }
    }
    template.text(rest)
}
