//! The statements that clients send for routines in the server.

use super::built;
use super::call::{Argument, NAME_OF_ORDER_STATUS, NAME_OF_PAYMENT, passes_names, routine};
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

/// The call of each type of transaction.
pub(crate) fn calls(settings: &Settings) -> Vec<Template> {
    use Argument::{Fixed, Quoted, Value};
    if settings.built {
        return built::calls(settings);
    }
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

/// A call; a procedure also wants places for the `results` that it gives.
fn call(settings: &Settings, name: &str, arguments: &[Argument], results: usize) -> Template {
    if settings.routines == Routines::Procedures {
        let places = [arguments, &[Argument::Null(results)]].concat();
        return routine(&format!("CALL {SCHEMA}.{name}"), &places, "");
    }
    routine(&format!("SELECT {SCHEMA}.{name}"), arguments, "")
}
