//! The statements that clients send for routines in the server.

use super::names::SCHEMA;
use super::settings::{Profile, Routines, Settings};
use crate::template::Template;

/// The types of transaction, with their weights in a deck of 23 (TPC-C 5.11, 5.2.4.2).
pub(crate) const TYPES: [(&str, u32); 5] =
    [("new_order", 10), ("payment", 10), ("delivery", 1), ("stock_level", 1), ("order_status", 1)];
pub(crate) const NEW_ORDER: u32 = 0;
pub(crate) const PAYMENT: u32 = 1;
pub(crate) const DELIVERY: u32 = 2;
pub(crate) const STOCK_LEVEL: u32 = 3;
pub(crate) const ORDER_STATUS: u32 = 4;

/// What HammerDB 6.0's prepared statements pass for a last name: the parameter's own name, as it stands between apostrophes there.
const NAME_OF_PAYMENT: &str = "$8";
const NAME_OF_ORDER_STATUS: &str = "$5";

/// An argument of a routine.
enum Argument {
    /// A number.
    Value(&'static str),
    /// A text, or an array's.
    Quoted(&'static str),
    /// A text that is the same each time.
    Fixed(&'static str),
}

/// The call of each type of transaction.
pub(crate) fn calls(settings: &Settings) -> Vec<Template> {
    use Argument::{Fixed, Quoted, Value};
    let hammerdb = settings.profile == Profile::Hammerdb;
    let name = |fixed| if passes_names(settings) { Quoted("name") } else { Fixed(fixed) };
    let new_order = if hammerdb {
        [Value("w_id"), Value("warehouses"), Value("d_id"), Value("c_id"), Value("lines"), Value("seed")]
    } else {
        [Value("w_id"), Value("d_id"), Value("c_id"), Quoted("items"), Quoted("supplies"), Quoted("quantities")]
    };
    let payment = [
        Value("w_id"),
        Value("d_id"),
        Value("c_w_id"),
        Value("c_d_id"),
        Value("c_id"),
        Value("by_name"),
        Value("amount"),
        name(NAME_OF_PAYMENT),
    ];
    let order_status = [Value("w_id"), Value("d_id"), Value("c_id"), Value("by_name"), name(NAME_OF_ORDER_STATUS)];
    vec![
        call(settings, "neword", &new_order, 1),
        call(settings, "payment", &payment, 1),
        call(settings, "delivery", &[Value("w_id"), Value("carrier")], 1),
        call(settings, "slev", &[Value("w_id"), Value("d_id"), Value("threshold")], 1),
        call(settings, "ostat", &order_status, 4),
    ]
}

/// Whether the server gets the name that was drawn. HammerDB's prepared functions do not.
pub(crate) fn passes_names(settings: &Settings) -> bool {
    settings.profile == Profile::Spec || settings.routines == Routines::Procedures || settings.names_match
}

/// A call; a procedure also wants places for the `results` that it gives.
fn call(settings: &Settings, routine: &str, arguments: &[Argument], results: usize) -> Template {
    let procedure = settings.routines == Routines::Procedures;
    let verb = if procedure { "CALL" } else { "SELECT" };
    let mut template = Template::new(&format!("{verb} {SCHEMA}.{routine}("));
    for (index, argument) in arguments.iter().enumerate() {
        template = if index > 0 { template.text(", ") } else { template };
        template = match argument {
            Argument::Value(name) => template.parameter(name),
            Argument::Quoted(name) => template.quoted(name),
            Argument::Fixed(text) => template.text(&format!("'{text}'")),
        };
    }
    let places = if procedure { ", NULL".repeat(results) } else { String::new() };
    template.text(&format!("{places})"))
}
