//! The statements of TPC-C 5.11 (2.4 to 2.8) as a client sends them one by one. They read and write what the functions of the
//! profile `spec` do.

use super::names::SCHEMA;
use crate::client::StatementId;
use crate::template::{Access, AccessKind, Template};

/// A statement of a transaction, by its place in [`TEXTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sql {
    Begin,
    Commit,
    Rollback,
    Discount,
    TakeNumber,
    AddOrder,
    AddOpen,
    Price,
    TakeStock,
    AddLine,
    PayWarehouse,
    PayDistrict,
    CountNamed,
    Named,
    Pay,
    PayAndNote,
    AddHistory,
    Oldest,
    Close,
    Carry,
    DeliverLines,
    Deliver,
    Find,
    LastOrder,
    Lines,
    NextNumber,
    Scarce,
}

impl Sql {
    pub fn id(self) -> StatementId {
        StatementId(self as u32)
    }
}

/// A value in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Warehouse,
    District,
    Customer,
    CustomerWarehouse,
    CustomerDistrict,
    Name,
    Middle,
    Order,
    LineCount,
    Local,
    Number,
    Item,
    Supply,
    Quantity,
    Remote,
    LineAmount,
    Place,
    Amount,
    Places,
    Carrier,
    Delivered,
    First,
    Threshold,
}

/// Each with its name in [`TEXTS`], and whether it is a text.
const FIELDS: [(&str, Field, bool); 23] = [
    ("w_id", Field::Warehouse, false),
    ("d_id", Field::District, false),
    ("c_id", Field::Customer, false),
    ("c_w_id", Field::CustomerWarehouse, false),
    ("c_d_id", Field::CustomerDistrict, false),
    ("c_last", Field::Name, true),
    ("middle", Field::Middle, false),
    ("o_id", Field::Order, false),
    ("lines", Field::LineCount, false),
    ("local", Field::Local, false),
    ("number", Field::Number, false),
    ("i_id", Field::Item, false),
    ("supply", Field::Supply, false),
    ("quantity", Field::Quantity, false),
    ("remote", Field::Remote, false),
    ("line_amount", Field::LineAmount, false),
    ("place", Field::Place, true),
    ("amount", Field::Amount, false),
    ("places", Field::Places, true),
    ("carrier", Field::Carrier, false),
    ("delivered", Field::Delivered, false),
    ("first", Field::First, false),
    ("threshold", Field::Threshold, false),
];

/// The tables' names, for accesses.
const WAREHOUSE: &str = "warehouse";
const DISTRICT: &str = "district";
const CUSTOMER: &str = "customer";
const STOCK: &str = "stock";
const ORDERS: &str = "orders";
const OPEN: &str = "new_order";
const LINE: &str = "order_line";
/// Lines of an order in the mean, and of the last 20 orders of a district.
const LINES: u32 = 10;
const LINES_OF_TWENTY: u32 = 200;
/// Customers of a district who have the same last name, in the mean.
const NAMESAKES: u32 = 3;

/// Text, and what it does to which rows: how many from the key that begins with that parameter; a name is no key.
type Text = (&'static str, Option<(AccessKind, &'static str, Option<usize>, u32)>);

use AccessKind::{Delete, Insert, Read, Update};

const TEXTS: [Text; 27] = [
    ("BEGIN", None),
    ("COMMIT", None),
    ("ROLLBACK", None),
    (
        "SELECT c_discount, c_last, c_credit, w_tax FROM {S}.customer, {S}.warehouse \
         WHERE w_id = {w_id} AND c_w_id = {w_id} AND c_d_id = {d_id} AND c_id = {c_id}",
        Some((Read, CUSTOMER, Some(1), 1)),
    ),
    (
        "UPDATE {S}.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = {w_id} AND d_id = {d_id} \
         RETURNING d_next_o_id - 1, d_tax",
        Some((Update, DISTRICT, Some(0), 1)),
    ),
    (
        "INSERT INTO {S}.orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         VALUES ({o_id}, {d_id}, {w_id}, {c_id}, now(), {lines}, {local})",
        Some((Insert, ORDERS, None, 1)),
    ),
    (
        "INSERT INTO {S}.new_order (no_o_id, no_d_id, no_w_id) VALUES ({o_id}, {d_id}, {w_id})",
        Some((Insert, OPEN, None, 1)),
    ),
    ("SELECT i_price, i_name, i_data FROM {S}.item WHERE i_id = {i_id}", Some((Read, "item", Some(0), 1))),
    (
        "UPDATE {S}.stock SET s_quantity = CASE WHEN s_quantity >= {quantity} + 10 THEN s_quantity - {quantity} \
         ELSE s_quantity - {quantity} + 91 END, s_ytd = s_ytd + {quantity}, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + {remote} WHERE s_w_id = {supply} AND s_i_id = {i_id} \
         RETURNING (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, \
         s_dist_09, s_dist_10])[{d_id}], s_quantity, s_data",
        Some((Update, STOCK, Some(5), 1)),
    ),
    (
        "INSERT INTO {S}.order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
         ol_amount, ol_dist_info) \
         VALUES ({o_id}, {d_id}, {w_id}, {number}, {i_id}, {supply}, {quantity}, {line_amount}, {place})",
        Some((Insert, LINE, None, 1)),
    ),
    (
        "UPDATE {S}.warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w_id} \
         RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
        Some((Update, WAREHOUSE, Some(1), 1)),
    ),
    (
        "UPDATE {S}.district SET d_ytd = d_ytd + {amount} WHERE d_w_id = {w_id} AND d_id = {d_id} \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
        Some((Update, DISTRICT, Some(1), 1)),
    ),
    (
        "SELECT count(*) FROM {S}.customer WHERE c_w_id = {c_w_id} AND c_d_id = {c_d_id} AND c_last = {c_last}",
        Some((Read, CUSTOMER, None, NAMESAKES)),
    ),
    (
        "SELECT c_id, c_first, c_middle, c_balance FROM {S}.customer \
         WHERE c_w_id = {c_w_id} AND c_d_id = {c_d_id} AND c_last = {c_last} ORDER BY c_first OFFSET {middle} LIMIT 1",
        Some((Read, CUSTOMER, None, NAMESAKES)),
    ),
    (
        "UPDATE {S}.customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount}, \
         c_payment_cnt = c_payment_cnt + 1 \
         WHERE c_w_id = {c_w_id} AND c_d_id = {c_d_id} AND c_id = {c_id} AND c_credit <> 'BC' \
         RETURNING c_balance, c_first, c_last, c_street_1, c_city, c_phone, c_since, c_credit_lim, c_discount",
        Some((Update, CUSTOMER, Some(2), 1)),
    ),
    (
        "UPDATE {S}.customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount}, \
         c_payment_cnt = c_payment_cnt + 1, c_data = left(concat_ws(' ', c_id, c_d_id, c_w_id, {d_id}::integer, \
         {w_id}::integer, {amount}::numeric, c_data), 500) \
         WHERE c_w_id = {c_w_id} AND c_d_id = {c_d_id} AND c_id = {c_id} \
         RETURNING c_balance, left(c_data, 200)",
        Some((Update, CUSTOMER, Some(5), 1)),
    ),
    (
        "INSERT INTO {S}.history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ({c_d_id}, {c_w_id}, {c_id}, {d_id}, {w_id}, now(), {amount}, {places})",
        Some((Insert, "history", None, 1)),
    ),
    (
        "SELECT no_o_id FROM {S}.new_order WHERE no_w_id = {w_id} AND no_d_id = {d_id} \
         ORDER BY no_o_id LIMIT 1 FOR UPDATE",
        Some((Read, OPEN, Some(0), 1)),
    ),
    (
        "DELETE FROM {S}.new_order WHERE no_w_id = {w_id} AND no_d_id = {d_id} AND no_o_id = {o_id}",
        Some((Delete, OPEN, Some(0), 1)),
    ),
    (
        "UPDATE {S}.orders SET o_carrier_id = {carrier} \
         WHERE o_w_id = {w_id} AND o_d_id = {d_id} AND o_id = {o_id} RETURNING o_c_id",
        Some((Update, ORDERS, Some(1), 1)),
    ),
    (
        "WITH delivered AS (UPDATE {S}.order_line SET ol_delivery_d = now() \
         WHERE ol_w_id = {w_id} AND ol_d_id = {d_id} AND ol_o_id = {o_id} RETURNING ol_amount) \
         SELECT sum(ol_amount) FROM delivered",
        Some((Update, LINE, Some(0), LINES)),
    ),
    (
        "UPDATE {S}.customer SET c_balance = c_balance + {delivered}, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = {w_id} AND c_d_id = {d_id} AND c_id = {c_id}",
        Some((Update, CUSTOMER, Some(1), 1)),
    ),
    (
        "SELECT c_id, c_first, c_middle, c_last, c_balance FROM {S}.customer \
         WHERE c_w_id = {c_w_id} AND c_d_id = {c_d_id} AND c_id = {c_id}",
        Some((Read, CUSTOMER, Some(0), 1)),
    ),
    (
        "SELECT o_id, o_carrier_id, o_entry_d FROM {S}.orders \
         WHERE o_w_id = {c_w_id} AND o_d_id = {c_d_id} AND o_c_id = {c_id} ORDER BY o_id DESC LIMIT 1",
        Some((Read, ORDERS, Some(0), 1)),
    ),
    (
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM {S}.order_line \
         WHERE ol_w_id = {w_id} AND ol_d_id = {d_id} AND ol_o_id = {o_id}",
        Some((Read, LINE, Some(0), LINES)),
    ),
    (
        "SELECT d_next_o_id FROM {S}.district WHERE d_w_id = {w_id} AND d_id = {d_id}",
        Some((Read, DISTRICT, Some(0), 1)),
    ),
    (
        "SELECT count(DISTINCT s_i_id) FROM {S}.order_line JOIN {S}.stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
         WHERE ol_w_id = {w_id} AND ol_d_id = {d_id} AND ol_o_id < {o_id} AND ol_o_id >= {first} \
         AND s_quantity < {threshold}",
        Some((Read, LINE, Some(0), LINES_OF_TWENTY)),
    ),
];

/// A statement with the values that it takes, in their order.
pub(crate) struct Prepared {
    pub template: Template,
    pub fields: Vec<Field>,
}

/// All statements, by [`Sql`].
pub(crate) fn statements() -> Vec<Prepared> {
    TEXTS.iter().map(prepared).collect()
}

fn prepared((text, does): &Text) -> Prepared {
    let text = text.replace("{S}", SCHEMA);
    let mut pieces = text.split('{');
    let (mut template, mut fields) = (Template::new(pieces.next().unwrap_or_default()), Vec::new());
    for piece in pieces {
        let (name, rest) = piece.split_once('}').expect("a value has its name between braces");
        let (_, field, quoted) = FIELDS.iter().find(|(known, ..)| *known == name).expect("a value of a statement");
        template = if *quoted { template.quoted(name) } else { template.parameter(name) };
        template = template.text(rest);
        fields.push(*field);
    }
    if let &Some((kind, relation, parameter, rows)) = does {
        template = template.access(Access { relation, number: 0, parameter, rows, kind });
    }
    Prepared { template, fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_has_its_number_and_begins_the_key_with_the_warehouse() {
        let all = statements();
        assert_eq!(all.len(), Sql::Scarce as usize + 1);
        for (sql, begin) in [
            (Sql::Rollback, "ROLLBACK"),
            (Sql::TakeStock, "UPDATE pgdyno_tpcc.stock"),
            (Sql::AddHistory, "INSERT INTO pgdyno_tpcc.history"),
            (Sql::Deliver, "UPDATE pgdyno_tpcc.customer"),
            (Sql::Scarce, "SELECT count(DISTINCT s_i_id)"),
        ] {
            assert!(all[sql as usize].template.numbered().starts_with(begin), "{sql:?}");
        }
        for one in &all {
            for access in one.template.accesses().iter().filter(|access| access.relation != "item") {
                let key = access.parameter.map(|place| one.fields[place]);
                let known = [None, Some(Field::Warehouse), Some(Field::CustomerWarehouse), Some(Field::Supply)];
                assert!(known.contains(&key), "{}: {key:?}", one.template.numbered());
            }
        }
    }
}
