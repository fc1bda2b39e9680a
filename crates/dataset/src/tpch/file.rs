//! The eight files: their names, how many rows they have, and how long these are.

use super::scale::Scale;

/// One of the eight files, which has its table's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFile {
    /// Customers, of whom a third has no order.
    Customer,
    /// The lines of orders.
    Lineitem,
    /// 25 nations.
    Nation,
    /// Orders.
    Orders,
    /// Parts.
    Part,
    /// Who supplies a part, four for each.
    Partsupp,
    /// Five regions.
    Region,
    /// Suppliers.
    Supplier,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a separator behind the last value too, as dbgen's do.
    Separator,
    /// With the last value: COPY takes a further separator for a further column, and refuses it.
    Value,
    /// With the last value, and tabs between values: a line of COPY's text format.
    Copy,
}

/// Lines of the orders of scale 1 (dbgen's `lineitem.tbl`), by which those of other scales are predicted.
const LINES_PER_1_500_000_ORDERS: u64 = 6_001_215;

impl TableFile {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Customer,
        Self::Lineitem,
        Self::Nation,
        Self::Orders,
        Self::Part,
        Self::Partsupp,
        Self::Region,
        Self::Supplier,
    ];

    /// The file of a table.
    pub(super) fn named(table: &str) -> Self {
        Self::ALL.into_iter().find(|file| file.name() == table).expect("each table has a file")
    }

    /// Its name without `.tbl`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Lineitem => "lineitem",
            Self::Nation => "nation",
            Self::Orders => "orders",
            Self::Part => "part",
            Self::Partsupp => "partsupp",
            Self::Region => "region",
            Self::Supplier => "supplier",
        }
    }

    /// The columns of its lines, in their order (clause 1.4.1).
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Customer => "c_custkey, c_name, c_address, c_nationkey, c_phone, c_acctbal, c_mktsegment, c_comment",
            Self::Lineitem => {
                "l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, \
                 l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment"
            }
            Self::Nation => "n_nationkey, n_name, n_regionkey, n_comment",
            Self::Orders => {
                "o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, \
                 o_shippriority, o_comment"
            }
            Self::Part => "p_partkey, p_name, p_mfgr, p_brand, p_type, p_size, p_container, p_retailprice, p_comment",
            Self::Partsupp => "ps_partkey, ps_suppkey, ps_availqty, ps_supplycost, ps_comment",
            Self::Region => "r_regionkey, r_name, r_comment",
            Self::Supplier => "s_suppkey, s_name, s_address, s_nationkey, s_phone, s_acctbal, s_comment",
        }
    }

    /// How many driving rows it has: lines are made by orders, suppliers of parts by parts, all others by themselves.
    pub(super) fn driving_rows(self, scale: Scale) -> u64 {
        match self {
            Self::Customer => scale.count(150_000),
            Self::Lineitem | Self::Orders => scale.count(1_500_000),
            Self::Part | Self::Partsupp => scale.count(200_000),
            Self::Supplier => scale.count(10_000),
            Self::Nation => 25,
            Self::Region => 5,
        }
    }

    /// How many rows it has; of lines about, as an order has one to seven.
    pub fn rows(self, scale: Scale) -> u64 {
        let driving = self.driving_rows(scale);
        match self {
            Self::Lineitem => driving * LINES_PER_1_500_000_ORDERS / 1_500_000,
            Self::Partsupp => driving * 4,
            _ => driving,
        }
    }

    /// Bytes of a row at scale 1, rounded: the file's by its rows.
    pub(super) fn bytes_per_row(self) -> u64 {
        match self {
            Self::Customer => 162,
            Self::Lineitem => 127,
            Self::Nation => 89,
            Self::Orders => 115,
            Self::Part => 121,
            Self::Partsupp => 149,
            Self::Region => 78,
            Self::Supplier => 141,
        }
    }
}
