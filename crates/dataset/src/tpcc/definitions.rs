//! Columns, keys, indexes and references.

use std::sync::Arc;

use pgdyno_workload::tpcc::{Profile, SCHEMA};

use super::customer::{Customers, History};
use super::item::{Items, Stock};
use super::order::{NewOrders, OrderLines, Orders};
use super::origin::Origin;
use super::warehouse::{Districts, Warehouses};
use crate::rows::Rows;
use crate::table::Table;

/// All tables.
pub(super) const NAMES: [&str; 9] =
    ["order_line", "stock", "customer", "orders", "history", "item", "new_order", "district", "warehouse"];

const ADDRESS: &str = "street_1 varchar(20) NOT NULL, {}street_2 varchar(20) NOT NULL, {}city varchar(20) NOT NULL, \
                       {}state char(2) NOT NULL, {}zip char(9) NOT NULL";

/// Each table, the largest first.
pub(super) fn tables(origin: Origin) -> Vec<Table> {
    NAMES.map(|name| table(name, origin)).to_vec()
}

fn table(name: &str, origin: Origin) -> Table {
    let qualified = format!("{SCHEMA}.{name}");
    let primary_key = key(name, origin.profile)
        .map(|columns| format!("ALTER TABLE {qualified} ADD CONSTRAINT {name}_i1 PRIMARY KEY ({columns})"));
    let indexes = unique(name).map(|columns| format!("CREATE UNIQUE INDEX {name}_i2 ON {qualified} ({columns})"));
    let references = if origin.profile == Profile::Spec { references(name) } else { &[] };
    let foreign_keys = references
        .iter()
        .map(|(columns, to)| format!("ALTER TABLE {qualified} ADD FOREIGN KEY ({columns}) REFERENCES {SCHEMA}.{to}"));
    Table {
        create: format!("CREATE TABLE {qualified} ({})", columns(name)),
        rows: rows(name, origin),
        after_rows: Vec::new(),
        primary_key,
        indexes: indexes.into_iter().collect(),
        foreign_keys: foreign_keys.collect(),
        name: qualified,
    }
}

fn rows(name: &str, origin: Origin) -> Arc<dyn Rows> {
    match name {
        "order_line" => Arc::new(OrderLines(origin)),
        "stock" => Arc::new(Stock(origin)),
        "customer" => Arc::new(Customers(origin)),
        "orders" => Arc::new(Orders(origin)),
        "history" => Arc::new(History(origin)),
        "item" => Arc::new(Items(origin)),
        "new_order" => Arc::new(NewOrders(origin)),
        "district" => Arc::new(Districts(origin)),
        _ => Arc::new(Warehouses(origin)),
    }
}

/// In HammerDB's order.
fn columns(name: &str) -> String {
    let address = |prefix: &str| format!("{prefix}{}", ADDRESS.replace("{}", prefix));
    match name {
        "order_line" => {
            "ol_delivery_d timestamptz, ol_o_id integer NOT NULL, ol_w_id integer NOT NULL, ol_i_id integer NOT NULL, \
             ol_supply_w_id integer NOT NULL, ol_d_id smallint NOT NULL, ol_number smallint NOT NULL, \
             ol_quantity smallint NOT NULL, ol_amount numeric(6,2), ol_dist_info char(24)"
                .to_owned()
        }
        "stock" => {
            let districts: Vec<_> = (1..=10).map(|number| format!("s_dist_{number:02} char(24) NOT NULL")).collect();
            format!(
                "s_i_id integer NOT NULL, s_w_id integer NOT NULL, s_ytd integer NOT NULL, s_quantity smallint NOT NULL, \
                 s_order_cnt smallint NOT NULL, s_remote_cnt smallint NOT NULL, {}, s_data varchar(50) NOT NULL",
                districts.join(", ")
            )
        }
        "customer" => format!(
            "c_since timestamptz NOT NULL, c_id integer NOT NULL, c_w_id integer NOT NULL, c_d_id smallint NOT NULL, \
             c_payment_cnt smallint NOT NULL, c_delivery_cnt smallint NOT NULL, c_first varchar(16) NOT NULL, \
             c_middle char(2) NOT NULL, c_last varchar(16) NOT NULL, {}, c_phone char(16) NOT NULL, \
             c_credit char(2) NOT NULL, c_credit_lim numeric(12,2) NOT NULL, c_discount numeric(4,4) NOT NULL, \
             c_balance numeric(12,2) NOT NULL, c_ytd_payment numeric(12,2) NOT NULL, c_data varchar(500) NOT NULL",
            address("c_")
        ),
        "orders" => {
            "o_entry_d timestamptz NOT NULL, o_id integer NOT NULL, o_w_id integer NOT NULL, o_c_id integer NOT NULL, \
             o_d_id smallint NOT NULL, o_carrier_id smallint, o_ol_cnt smallint NOT NULL, o_all_local smallint NOT NULL"
                .to_owned()
        }
        "history" => {
            "h_date timestamptz NOT NULL, h_c_id integer, h_c_w_id integer NOT NULL, h_w_id integer NOT NULL, \
             h_c_d_id smallint NOT NULL, h_d_id smallint NOT NULL, h_amount numeric(6,2) NOT NULL, \
             h_data varchar(24) NOT NULL"
                .to_owned()
        }
        "item" => {
            "i_id integer NOT NULL, i_im_id integer NOT NULL, i_name varchar(24) NOT NULL, i_price numeric(5,2) NOT NULL, \
             i_data varchar(50) NOT NULL"
                .to_owned()
        }
        "new_order" => "no_w_id integer NOT NULL, no_o_id integer NOT NULL, no_d_id smallint NOT NULL".to_owned(),
        "district" => format!(
            "d_w_id integer NOT NULL, d_next_o_id integer NOT NULL, d_id smallint NOT NULL, d_ytd numeric(12,2) NOT NULL, \
             d_tax numeric(4,4) NOT NULL, d_name varchar(10) NOT NULL, {}",
            address("d_")
        ),
        _ => format!(
            "w_id integer NOT NULL, w_name varchar(10) NOT NULL, {}, w_tax numeric(4,4) NOT NULL, \
             w_ytd numeric(16,2) NOT NULL",
            address("w_")
        ),
    }
}

/// Of the primary key. HammerDB's key of `stock` begins with the item, which spreads a warehouse over the whole index.
fn key(name: &str, profile: Profile) -> Option<&'static str> {
    Some(match name {
        "order_line" => "ol_w_id, ol_d_id, ol_o_id, ol_number",
        "stock" if profile == Profile::Spec => "s_w_id, s_i_id",
        "stock" => "s_i_id, s_w_id",
        "customer" => "c_w_id, c_d_id, c_id",
        "orders" => "o_w_id, o_d_id, o_id",
        "item" => "i_id",
        "new_order" => "no_w_id, no_d_id, no_o_id",
        "district" => "d_w_id, d_id",
        "warehouse" => "w_id",
        _ => return None,
    })
}

fn unique(name: &str) -> Option<&'static str> {
    match name {
        "customer" => Some("c_w_id, c_d_id, c_last, c_first, c_id"),
        "orders" => Some("o_w_id, o_d_id, o_c_id, o_id"),
        _ => None,
    }
}

/// (columns, table that they refer to): TPC-C 5.11, 1.3.
fn references(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "district" => &[("d_w_id", "warehouse")],
        "customer" => &[("c_w_id, c_d_id", "district")],
        "history" => &[("h_c_w_id, h_c_d_id, h_c_id", "customer"), ("h_w_id, h_d_id", "district")],
        "new_order" => &[("no_w_id, no_d_id, no_o_id", "orders")],
        "orders" => &[("o_w_id, o_d_id, o_c_id", "customer")],
        "order_line" => &[("ol_w_id, ol_d_id, ol_o_id", "orders"), ("ol_supply_w_id, ol_i_id", "stock")],
        "stock" => &[("s_w_id", "warehouse"), ("s_i_id", "item")],
        _ => &[],
    }
}
