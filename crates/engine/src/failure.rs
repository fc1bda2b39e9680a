//! An error that the user can correct, from whichever crate.

use serde_json::{Value, json};

/// The exit code where the machine lacks something, or does not work as it should.
pub(crate) const HOST: u8 = 3;

/// What went wrong and what to do; printed on standard error.
pub(crate) struct Failure {
    pub message: String,
    pub remedy: String,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// Before anything was started.
    pub(crate) fn new(message: String, remedy: String) -> Self {
        Self { message, remedy, code: 2 }
    }

    /// After something was done that stays.
    pub(crate) fn late(fault: pgdyno_connection::Fault) -> Self {
        Self { message: fault.message, remedy: fault.remedy, code: 1 }
    }

    /// As it is printed: `{"error": {"message", "remedy", "of_host"}}`.
    pub(crate) fn document(&self) -> Value {
        json!({"error": {"message": self.message, "remedy": self.remedy, "of_host": self.code == HOST}})
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
        let code = if fault.of_host { HOST } else { 2 };
        Self { code, ..Self::new(fault.message, fault.remedy) }
    }
}

impl From<pgdyno_load::LoadError> for Failure {
    fn from(error: pgdyno_load::LoadError) -> Self {
        Self::new(error.message, error.remedy)
    }
}

impl From<pgdyno_capture::CaptureError> for Failure {
    fn from(error: pgdyno_capture::CaptureError) -> Self {
        Self::new(error.message, error.remedy)
    }
}

impl From<pgdyno_generate::Refusal> for Failure {
    fn from(error: pgdyno_generate::Refusal) -> Self {
        Self::new(error.message, error.remedy)
    }
}

impl From<pgdyno_connection::Fault> for Failure {
    fn from(error: pgdyno_connection::Fault) -> Self {
        Self::new(error.message, error.remedy)
    }
}
