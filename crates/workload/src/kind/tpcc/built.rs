//! Calls of the routines that HammerDB 6.0 itself has built, in the schema where it builds them. Their arguments come in its order.
//!
//! What its procedures give back has to begin as there, with 0 or an empty text: where a name has one customer, its payment finds none
//! and computes with what it was given.

use super::call::{Argument, NAME_OF_ORDER_STATUS, NAME_OF_PAYMENT, passes_names, routine};
use super::settings::{Routines, Settings};
use crate::template::Template;

const NOW: Argument = Argument::Same("now()::timestamp");
/// What its function for Order-Status gives back: it is declared without columns, so a call has to name them.
const LINES: &str = " AS line (item integer, supply integer, quantity smallint, amount numeric, delivered timestamptz, \
                     customer integer, last varchar, first varchar, middle varchar, balance numeric, number integer, \
                     entered timestamp, carrier integer)";

/// The call of each type of transaction.
pub(super) fn calls(settings: &Settings) -> Vec<Template> {
    use Argument::{Fixed, Quoted, Same, Value};
    let name = |fixed| if passes_names(settings) { Quoted("name") } else { Fixed(fixed) };
    let [w_id, d_id, c_id] = [Value("w_id"), Value("d_id"), Value("c_id")];
    let new_order = [w_id, Value("warehouses"), d_id, c_id, Value("lines")];
    let paid = [w_id, d_id, Value("c_w_id"), Value("c_d_id")];
    let delivery = [w_id, Value("carrier")];
    let stock = [w_id, d_id, Value("threshold")];
    let asked = [w_id, d_id, c_id, Value("by_name")];
    if settings.routines == Routines::Functions {
        let payment = [&paid[..], &[c_id, Value("by_name"), Value("amount"), name(NAME_OF_PAYMENT), Same("'0', 0")]];
        let status = [&asked[..], &[name(NAME_OF_ORDER_STATUS)]].concat();
        return vec![
            routine("SELECT public.neword", &[&new_order[..], &[Same("0")]].concat(), ""),
            routine("SELECT public.payment", &payment.concat(), ""),
            routine("SELECT public.delivery", &delivery, ""),
            routine("SELECT public.slev", &stock, ""),
            routine("SELECT * FROM public.ostat", &status, LINES),
        ];
    }
    // Credit, name and customer of a payment are given back too, and so are 18 texts, a time, three numbers and a text.
    let texts = ["''"; 18].map(Same);
    let payment = [
        &paid[..],
        &[Value("by_name"), Value("amount"), Same("'0'"), name(NAME_OF_PAYMENT), c_id],
        &texts,
        &[NOW, Same("0.0, 0.0, 0.0, ''"), NOW],
    ]
    .concat();
    let new_order = [&new_order[..], &[Same("0.0, '', '', 0.0, 0.0, 0"), NOW]].concat();
    let status = [&asked[..], &[name(NAME_OF_ORDER_STATUS), Same("'', '', 0.0, 0"), NOW, Same("0, ''")]].concat();
    vec![
        routine("CALL public.neword", &new_order, ""),
        routine("CALL public.payment", &payment, ""),
        routine("CALL public.delivery", &[&delivery[..], &[NOW]].concat(), ""),
        routine("CALL public.slev", &[&stock[..], &[Same("0")]].concat(), ""),
        routine("CALL public.ostat", &status, ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::settings::Profile;
    use super::*;

    fn texts(routines: Routines, names_match: bool) -> Vec<String> {
        let (profile, warehouses, clients) = (Profile::Hammerdb, 5, 4);
        let (all_warehouses, keying, built) = (false, false, true);
        let settings = Settings { profile, routines, warehouses, clients, all_warehouses, keying, names_match, built };
        calls(&settings).iter().map(|call| call.numbered().to_owned()).collect()
    }

    #[test]
    fn functions_are_called_with_the_arguments_of_hammerdb() {
        let found = texts(Routines::Functions, false);
        assert_eq!(found[0], "SELECT public.neword($1, $2, $3, $4, $5, 0)");
        assert_eq!(found[1], "SELECT public.payment($1, $2, $3, $4, $5, $6, $7, '$8', '0', 0)");
        assert_eq!(found[2], "SELECT public.delivery($1, $2)");
        assert_eq!(found[3], "SELECT public.slev($1, $2, $3)");
        assert!(found[4].starts_with("SELECT * FROM public.ostat($1, $2, $3, $4, '$5') AS line (item integer, "));
        assert!(texts(Routines::Functions, true)[1].contains("$7, $8, '0', 0)"), "the name is passed");
    }

    #[test]
    fn procedures_have_as_many_arguments_as_those_of_hammerdb() {
        let counts = texts(Routines::Procedures, false).iter().map(|call| call.split(", ").count()).collect::<Vec<_>>();
        assert_eq!(counts, [12, 33, 3, 4, 12]);
    }
}
