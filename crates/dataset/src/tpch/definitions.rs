//! Columns, keys, indexes and references of the tables.

use std::sync::Arc;

use super::file::{Ending, TableFile};
use super::profile::{Profile, SCHEMA};
use super::rows::TableRows;
use super::scale::Scale;
use crate::table::Table;

/// All tables, the largest first.
pub(super) const NAMES: [&str; 8] =
    ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"];

/// The largest of the specification's scale factors whose keys of orders fit into an integer.
const INTEGER_SCALE_MAX: f64 = 300.0;

/// Each table, the largest first.
pub(super) fn tables(profile: Profile, scale: Scale) -> Vec<Table> {
    NAMES.map(|name| table(name, profile, scale)).to_vec()
}

fn table(name: &'static str, profile: Profile, scale: Scale) -> Table {
    let qualified = format!("{SCHEMA}.{name}");
    let primary_key = format!("ALTER TABLE {qualified} ADD CONSTRAINT {name}_pk PRIMARY KEY ({})", key(name, profile));
    let indexes = indexes(name, profile).iter().map(|columns| format!("CREATE INDEX ON {qualified} ({columns})"));
    let foreign_keys = references(name).iter().map(|(columns, to)| {
        let deferred = if profile == Profile::Hammerdb && *to == "orders" { " DEFERRABLE" } else { "" };
        format!("ALTER TABLE {qualified} ADD FOREIGN KEY ({columns}) REFERENCES {SCHEMA}.{to}{deferred}")
    });
    Table {
        create: format!("CREATE TABLE {qualified} ({})", columns(name, profile, scale)),
        rows: Arc::new(TableRows::new(TableFile::named(name), scale, Ending::Copy)),
        after_rows: Vec::new(),
        primary_key: Some(primary_key),
        indexes: indexes.collect(),
        foreign_keys: foreign_keys.collect(),
        name: qualified,
    }
}

fn columns(name: &str, profile: Profile, scale: Scale) -> String {
    match profile {
        Profile::Hammerdb => typed(hammerdb(name), ""),
        Profile::Spec => {
            let orderkey = if scale.factor() <= INTEGER_SCALE_MAX.next_up() { "i" } else { "bigint" };
            typed(&spec(name).replace("orderkey i", &format!("orderkey {orderkey}")), " NOT NULL")
        }
    }
}

/// Columns with their types written out; `each` follows every one.
fn typed(columns: &str, each: &str) -> String {
    let one = |column: &str| {
        let (name, kind) = column.split_once(' ').expect("a name and a type");
        let (kind, null) = kind.strip_suffix('!').map_or((kind, ""), |kind| (kind, " NOT NULL"));
        let kind = match kind {
            "i" => "integer",
            "d" => "decimal(15,2)",
            "n" => "numeric",
            "ts" => "timestamp",
            kind => kind,
        };
        format!("{name} {kind}{null}{each}")
    };
    columns.split(", ").map(one).collect::<Vec<_>>().join(", ")
}

/// In dbgen's order, none ever NULL (clause 1.4.1); `i` and `d` stand for the types of keys and of amounts.
fn spec(name: &str) -> &'static str {
    match name {
        "lineitem" => {
            "l_orderkey i, l_partkey i, l_suppkey i, l_linenumber i, l_quantity d, l_extendedprice d, l_discount d, l_tax d, \
             l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, \
             l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44)"
        }
        "orders" => {
            "o_orderkey i, o_custkey i, o_orderstatus char(1), o_totalprice d, o_orderdate date, o_orderpriority char(15), \
             o_clerk char(15), o_shippriority i, o_comment varchar(79)"
        }
        "partsupp" => "ps_partkey i, ps_suppkey i, ps_availqty i, ps_supplycost d, ps_comment varchar(199)",
        "part" => {
            "p_partkey i, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25), p_size i, \
             p_container char(10), p_retailprice d, p_comment varchar(23)"
        }
        "customer" => {
            "c_custkey i, c_name varchar(25), c_address varchar(40), c_nationkey i, c_phone char(15), c_acctbal d, \
             c_mktsegment char(10), c_comment varchar(117)"
        }
        "supplier" => {
            "s_suppkey i, s_name char(25), s_address varchar(40), s_nationkey i, s_phone char(15), s_acctbal d, \
             s_comment varchar(101)"
        }
        "nation" => "n_nationkey i, n_name char(25), n_regionkey i, n_comment varchar(152)",
        _ => "r_regionkey i, r_name char(25), r_comment varchar(152)",
    }
}

/// In HammerDB's order; `n` is its NUMERIC without a precision, `ts` its TIMESTAMP, `!` NOT NULL.
fn hammerdb(name: &str) -> &'static str {
    match name {
        "lineitem" => {
            "l_shipdate ts, l_orderkey n!, l_discount n!, l_extendedprice n!, l_suppkey n!, \
             l_quantity n!, l_returnflag char(1), l_partkey n!, l_linestatus char(1), l_tax n!, \
             l_commitdate ts, l_receiptdate ts, l_shipmode char(10), l_linenumber n!, l_shipinstruct char(25), \
             l_comment varchar(44)"
        }
        "orders" => {
            "o_orderdate ts, o_orderkey n!, o_custkey n!, o_orderpriority char(15), o_shippriority n, \
             o_clerk char(15), o_orderstatus char(1), o_totalprice n, o_comment varchar(79)"
        }
        "partsupp" => "ps_partkey n!, ps_suppkey n!, ps_supplycost n!, ps_availqty n, ps_comment varchar(199)",
        "part" => {
            "p_partkey n!, p_type varchar(25), p_size n, p_brand char(10), p_name varchar(55), p_container char(10), \
             p_mfgr char(25), p_retailprice n, p_comment varchar(23)"
        }
        "customer" => {
            "c_custkey n!, c_mktsegment char(10), c_nationkey n, c_name varchar(25), c_address varchar(40), \
             c_phone char(15), c_acctbal n, c_comment varchar(118)"
        }
        "supplier" => {
            "s_suppkey n!, s_nationkey n, s_comment varchar(102), s_name char(25), s_address varchar(40), \
             s_phone char(15), s_acctbal n"
        }
        "nation" => "n_nationkey n!, n_name char(25), n_regionkey n, n_comment varchar(152)",
        _ => "r_regionkey n, r_name char(25), r_comment varchar(152)",
    }
}

/// Of the primary key. HammerDB's of the lines begins with their number, which is no way to the lines of an order.
fn key(name: &str, profile: Profile) -> &'static str {
    match name {
        "lineitem" if profile == Profile::Hammerdb => "l_linenumber, l_orderkey",
        "lineitem" => "l_orderkey, l_linenumber",
        "orders" => "o_orderkey",
        "partsupp" => "ps_partkey, ps_suppkey",
        "part" => "p_partkey",
        "customer" => "c_custkey",
        "supplier" => "s_suppkey",
        "nation" => "n_nationkey",
        _ => "r_regionkey",
    }
}

/// (columns, table that they refer to): clause 1.4.2, and HammerDB's.
fn references(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "lineitem" => &[("l_partkey, l_suppkey", "partsupp"), ("l_orderkey", "orders")],
        "orders" => &[("o_custkey", "customer")],
        "partsupp" => &[("ps_partkey", "part"), ("ps_suppkey", "supplier")],
        "supplier" => &[("s_nationkey", "nation")],
        "customer" => &[("c_nationkey", "nation")],
        "nation" => &[("n_regionkey", "region")],
        _ => &[],
    }
}

/// Columns of the other indexes: of each reference, as HammerDB has them. In `spec` those are missing that a primary key
/// begins with (clause 1.5 allows indexes on foreign keys); without that on the parts of lines two queries take hours.
fn indexes(name: &str, profile: Profile) -> &'static [&'static str] {
    match (name, profile) {
        ("lineitem", Profile::Hammerdb) => &["l_partkey, l_suppkey", "l_orderkey"],
        ("lineitem", Profile::Spec) => &["l_partkey, l_suppkey"],
        ("orders", _) => &["o_custkey"],
        ("partsupp", Profile::Hammerdb) => &["ps_partkey", "ps_suppkey"],
        ("partsupp", Profile::Spec) => &["ps_suppkey"],
        ("supplier", _) => &["s_nationkey"],
        ("customer", _) => &["c_nationkey"],
        ("nation", _) => &["n_regionkey"],
        _ => &[],
    }
}
