//! A call of a routine, whoever has made it: its arguments, and whether a last name is among them.

use super::settings::{Profile, Routines, Settings};
use crate::template::Template;

/// What HammerDB 6.0's prepared statements pass for a last name: the parameter's own name, as it stands between apostrophes there.
pub(super) const NAME_OF_PAYMENT: &str = "$8";
pub(super) const NAME_OF_ORDER_STATUS: &str = "$5";

/// An argument of a routine.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// A number.
    Value(&'static str),
    /// A text, or an array's.
    Quoted(&'static str),
    /// A text that is the same each time.
    Fixed(&'static str),
    /// SQL that is the same each time.
    Same(&'static str),
    /// So many places for what is given back.
    Null(usize),
}

/// Whether the server gets the name that was drawn. HammerDB's prepared functions do not.
pub(super) fn passes_names(settings: &Settings) -> bool {
    settings.profile == Profile::Spec || settings.routines == Routines::Procedures || settings.names_match
}

/// `begin(arguments)rest`.
pub(super) fn routine(begin: &str, arguments: &[Argument], rest: &str) -> Template {
    let mut template = Template::new(&format!("{begin}("));
    for (index, argument) in arguments.iter().enumerate() {
        template = if index > 0 { template.text(", ") } else { template };
        template = match *argument {
            Argument::Value(name) => template.parameter(name),
            Argument::Quoted(name) => template.quoted(name),
            Argument::Fixed(text) => template.text(&format!("'{text}'")),
            Argument::Same(sql) => template.text(sql),
            Argument::Null(places) => template.text(&vec!["NULL"; places].join(", ")),
        };
    }
    template.text(&format!("){rest}"))
}
