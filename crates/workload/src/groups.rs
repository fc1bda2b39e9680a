//! How statements are grouped in statistics.

use crate::template::{Class, Template};

/// The statements of a workload as statistics have them: those that differ by the number of their table alone are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The text of each; where there are several tables, with `N` for their numbers.
    pub texts: Vec<String>,
    /// What each counts as.
    pub classes: Vec<Class>,
    /// The group of each statement, by [`StatementId`](crate::StatementId).
    pub of: Vec<u32>,
}

impl Groups {
    /// Each statement is a group.
    pub fn each(statements: &[Template]) -> Self {
        let mut groups = Self::default();
        statements.iter().for_each(|template| groups.push(template));
        groups
    }

    /// Adds a statement that is a group of its own.
    pub(crate) fn push(&mut self, template: &Template) {
        self.of.push(self.texts.len() as u32);
        self.texts.push(template.numbered().to_owned());
        self.classes.push(template.class());
    }
}
