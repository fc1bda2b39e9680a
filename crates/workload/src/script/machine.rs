//! Runs a script for one client.

use super::command::*;
use super::evaluate::{Scope, Trouble};
use crate::answer::{Answer, ResultSet};
use crate::client::{Statement, StatementId};
use crate::error::{RunError, ScriptError};
use crate::keys::Zipf;
use crate::program::{Program, Reply, Step};
use crate::random::Random;
use crate::template::{ParameterBuffer, Template};
use crate::time::Nanos;
use crate::value::{Value, Variable};
use std::sync::Arc;

/// The scripts that all clients run, and their statements.
#[derive(Debug)]
pub(crate) struct Shared {
    pub compiled: Compiled,
    pub statements: Vec<Template>,
    /// How many times as long `\sleep` takes as it says.
    pub dilation: u64,
}

/// One client's place in a script, and its variables.
pub(crate) struct Machine {
    shared: Arc<Shared>,
    variables: Vec<Variable>,
    /// As they were when the transaction began, for another try.
    before: Vec<Variable>,
    may_retry: bool,
    random: Random,
    zipf: Option<Zipf>,
    script: usize,
    next: usize,
    sleeping: Option<Nanos>,
    in_pipeline: bool,
    /// Whether all commands were done, so that a fault is the end's and not the last command's.
    ended: bool,
    sent: Option<u32>,
    parameters: ParameterBuffer,
    error: RunError,
}

impl Machine {
    /// A client; `definitions` are the variables that are set from outside.
    pub fn new(shared: Arc<Shared>, definitions: &[(String, Variable)], may_retry: bool) -> Self {
        let mut variables = vec![Variable::Undefined; shared.compiled.variables.len()];
        for (name, value) in definitions {
            if let Some(&number) = shared.compiled.variables.get(name) {
                variables[number] = value.clone();
            }
        }
        let at = crate::error::Position { line: 1, column: 1 };
        Self {
            before: variables.clone(),
            shared,
            variables,
            may_retry,
            random: Random::new(0),
            zipf: None,
            script: 0,
            next: 0,
            sleeping: None,
            in_pipeline: false,
            ended: false,
            sent: None,
            parameters: ParameterBuffer::default(),
            error: ScriptError { script: String::new(), at, message: String::new() },
        }
    }

    fn scope(&mut self) -> Scope<'_> {
        Scope { variables: &self.variables, random: &mut self.random, zipf: &mut self.zipf }
    }

    /// One command; `None` goes on with the next.
    fn execute(&mut self, command: &Command, now: Nanos) -> Result<Option<Step>, Trouble> {
        self.next += 1;
        match command {
            Command::Sql { statement, variables, keep } => return self.send(*statement, variables, keep.is_some()),
            Command::Set { variable, expression } => {
                let value = self.scope().evaluate(expression)?;
                self.variables[*variable] = Variable::Value(value);
            }
            Command::Sleep(sleep) => {
                let until = now.saturating_add(self.sleep_ns(*sleep)?);
                if until > now {
                    self.sleeping = Some(until);
                    return Ok(Some(Step::WaitUntil(until)));
                }
            }
            Command::Jump(target) => self.next = *target,
            Command::JumpUnless { condition, target } => {
                if !self.scope().evaluate(condition)?.is_true() {
                    self.next = *target;
                }
            }
            Command::StartPipeline if self.in_pipeline => return Err(message("this pipeline was begun before")),
            Command::StartPipeline => self.in_pipeline = true,
            Command::SyncPipeline | Command::EndPipeline if !self.in_pipeline => {
                return Err(message("no pipeline was begun: write \\startpipeline first"));
            }
            Command::SyncPipeline => return Ok(Some(Step::Sync { wait: false })),
            Command::EndPipeline => {
                self.in_pipeline = false;
                return Ok(Some(Step::Sync { wait: true }));
            }
        }
        Ok(None)
    }

    fn send(&mut self, statement: u32, variables: &[usize], keep: bool) -> Result<Option<Step>, Trouble> {
        if keep && self.in_pipeline {
            return Err(message("\\gset and \\aset have no answer inside a pipeline: end it first"));
        }
        self.parameters.clear();
        for &number in variables {
            match &self.variables[number] {
                Variable::Undefined => self.parameters.undefined(),
                Variable::Value(Value::Null) => self.parameters.null(),
                Variable::Value(value) => self.parameters.text(|out| value.write(out)),
                Variable::Text(text) => self.parameters.text(|out| out.extend_from_slice(text)),
            }
        }
        self.sent = Some(statement);
        Ok(Some(Step::Send))
    }

    fn sleep_ns(&self, sleep: Sleep) -> Result<u64, Trouble> {
        let ns = match sleep {
            Sleep::Constant { ns } => ns,
            Sleep::Variable { variable, unit_ns } => {
                let value = match &self.variables[variable] {
                    Variable::Undefined => return Err(Trouble::Undefined(variable)),
                    Variable::Value(value) => *value,
                    Variable::Text(text) => Value::from_text(text).ok_or(Trouble::Malformed(variable))?,
                };
                // A negative time is none.
                u64::try_from(value.integer()?).unwrap_or(0).saturating_mul(unit_ns)
            }
        };
        Ok(ns.saturating_mul(self.shared.dilation))
    }

    /// Takes the values that the statement before was to bring.
    fn take(&mut self, shared: &Shared, answer: Option<&Answer>) -> Result<(), Trouble> {
        let commands = &shared.compiled.scripts[self.script].commands;
        let last = self.next.checked_sub(1).map(|index| &commands[index].command);
        let Some(Command::Sql { keep: Some(keep), .. }) = last else { return Ok(()) };
        let sets = answer.map_or(&[][..], Answer::sets);
        if keep.each {
            sets.iter().filter(|set| set.rows() > 0).for_each(|set| self.assign(shared, keep, set));
            return Ok(());
        }
        match sets.last() {
            Some(set) if set.rows() == 1 => {
                self.assign(shared, keep, set);
                Ok(())
            }
            Some(set) => {
                Err(Trouble::Message(format!("\\gset expects one row, and the statement gave {}", set.rows())))
            }
            None => Err(message("\\gset expects one row, and the statement gave no result")),
        }
    }

    fn assign(&mut self, shared: &Shared, keep: &Keep, set: &ResultSet) {
        for (column, value) in set.last_row() {
            // A variable that no script reads has no number, and needs none.
            let Some(number) = lookup(shared, &keep.prefix, column) else { continue };
            match (value, &mut self.variables[number]) {
                (None, variable) => *variable = Variable::Value(Value::Null),
                (Some(text), Variable::Text(old)) => {
                    old.clear();
                    old.extend_from_slice(text);
                }
                (Some(text), variable) => *variable = Variable::Text(text.to_vec()),
            }
        }
    }

    fn explain(&mut self, shared: &Shared, trouble: Trouble) {
        let name = |number: usize| {
            let found = shared.compiled.variables.iter().find(|(_, value)| **value == number);
            found.map_or("?", |(name, _)| name.as_str())
        };
        let text = match trouble {
            Trouble::Message(message) => message,
            Trouble::Undefined(number) => format!("the variable `{}` was never set", name(number)),
            Trouble::Malformed(number) => format!("the variable `{}` holds a text that is no value", name(number)),
        };
        self.fail(&text);
    }

    /// Runs commands until one needs the host.
    fn run(&mut self, shared: &Shared, now: Nanos, reply: Reply<'_>) -> Result<Step, Trouble> {
        if self.sent.take().is_some() && !self.in_pipeline {
            self.take(shared, reply)?;
        }
        if let Some(until) = self.sleeping.take_if(|until| now < *until) {
            self.sleeping = Some(until);
            return Ok(Step::WaitUntil(until));
        }
        self.sleeping = None;
        let commands = &shared.compiled.scripts[self.script].commands;
        while let Some(located) = commands.get(self.next) {
            if let Some(step) = self.execute(&located.command, now)? {
                return Ok(step);
            }
        }
        self.ended = true;
        if self.in_pipeline {
            return Err(message("the script ends inside a pipeline: add \\endpipeline"));
        }
        Ok(Step::End)
    }
}

/// The variable of a prefix and a column, without putting them together first.
fn lookup(shared: &Shared, prefix: &str, column: &str) -> Option<usize> {
    let variables = &shared.compiled.variables;
    if prefix.is_empty() {
        return variables.get(column).copied();
    }
    let from_prefix = variables.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
    from_prefix
        .take_while(|(name, _)| name.starts_with(prefix))
        .find(|(name, _)| &name[prefix.len()..] == column)
        .map(|(_, number)| *number)
}

fn message(text: &str) -> Trouble {
    Trouble::Message(text.to_owned())
}

impl Program for Machine {
    fn begin(&mut self, script: u32, random: Random, again: bool) {
        if again {
            self.variables.clone_from(&self.before);
        } else if self.may_retry {
            self.before.clone_from(&self.variables);
        }
        self.script = script as usize;
        self.random = random;
        self.next = 0;
        self.sleeping = None;
        self.in_pipeline = false;
        self.ended = false;
        self.sent = None;
    }

    fn step(&mut self, now: Nanos, reply: Reply<'_>) -> Step {
        let shared = Arc::clone(&self.shared);
        match self.run(&shared, now, reply) {
            Ok(step) => step,
            Err(trouble) => {
                self.explain(&shared, trouble);
                Step::Abort
            }
        }
    }

    fn statement(&self) -> Statement<'_> {
        let number = self.sent.expect("a statement is sent only when there is one");
        let body = &self.shared.compiled.scripts[self.script];
        let keep = matches!(body.commands[self.next - 1].command, Command::Sql { keep: Some(_), .. });
        Statement {
            id: StatementId(number),
            template: &self.shared.statements[number as usize],
            parameters: self.parameters.get(),
            keep,
            pipelined: self.in_pipeline,
        }
    }

    fn error(&self) -> &RunError {
        &self.error
    }

    fn fail(&mut self, message: &str) {
        let body = &self.shared.compiled.scripts[self.script];
        let command = self.next.checked_sub(1).filter(|_| !self.ended).map(|index| &body.commands[index]);
        let at = command.map_or(body.end, |command| command.at);
        self.error = ScriptError { script: body.name.clone(), at, message: message.to_owned() };
    }
}
