//! An error that the user can correct, from whichever crate.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The exit code where the machine lacks something, or does not work as it should.
pub(crate) const HOST: u8 = 3;

/// The exit code of an error: that of the machine where its code says so, that of a bug, or that of what the user can correct.
fn exit_of(code: &str) -> u8 {
    match code {
        "engine.panic" => 1,
        code if code.starts_with("host.") => HOST,
        _ => 2,
    }
}

/// What went wrong and what to do; printed on standard error.
pub(crate) struct Failure {
    pub message: String,
    pub remedy: String,
    /// The exit code.
    pub exit: u8,
    /// A stable name of the error; empty where it has none.
    pub code: Cow<'static, str>,
    /// What a program may want to know of it: an object, or null.
    pub data: Value,
}

impl Failure {
    /// Before anything was started.
    pub(crate) fn new(message: String, remedy: String) -> Self {
        Self { message, remedy, exit: 2, code: Cow::Borrowed(""), data: Value::Null }
    }

    /// After something was done that stays.
    pub(crate) fn late(fault: pgdyno_connection::Fault) -> Self {
        Self { exit: 1, ..fault.into() }
    }

    /// As it is printed: `{"error": {"message", "remedy", "of_host", "code", "data"}}`.
    pub(crate) fn document(&self) -> Value {
        let Self { message, remedy, exit, code, data } = self;
        json!({"error": {"message": message, "remedy": remedy, "of_host": *exit == HOST, "code": code, "data": data}})
    }
}

impl From<pgdyno_catalog::CatalogError> for Failure {
    fn from(error: pgdyno_catalog::CatalogError) -> Self {
        pgdyno_catalog::SpecError::from(error).into()
    }
}

impl From<pgdyno_catalog::SpecError> for Failure {
    fn from(error: pgdyno_catalog::SpecError) -> Self {
        Self::new(error.message, error.remedy)
    }
}

impl From<pgdyno_host::Fault> for Failure {
    fn from(fault: pgdyno_host::Fault) -> Self {
        let exit = if fault.of_host { HOST } else { exit_of(&fault.code) };
        Self { exit, code: fault.code, data: fault.data, ..Self::new(fault.message, fault.remedy) }
    }
}

impl From<pgdyno_load::LoadError> for Failure {
    fn from(error: pgdyno_load::LoadError) -> Self {
        Self {
            exit: exit_of(&error.code),
            code: error.code,
            data: error.data,
            ..Self::new(error.message, error.remedy)
        }
    }
}

impl From<pgdyno_capture::CaptureError> for Failure {
    fn from(error: pgdyno_capture::CaptureError) -> Self {
        Self { code: error.code, data: error.data, ..Self::new(error.message, error.remedy) }
    }
}

impl From<pgdyno_generate::Refusal> for Failure {
    fn from(error: pgdyno_generate::Refusal) -> Self {
        Self::new(error.message, error.remedy)
    }
}

impl From<pgdyno_connection::Fault> for Failure {
    fn from(error: pgdyno_connection::Fault) -> Self {
        Self {
            exit: exit_of(&error.code),
            code: error.code,
            data: error.data,
            ..Self::new(error.message, error.remedy)
        }
    }
}
