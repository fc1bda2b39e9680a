"""The 22 queries derived from TPC-H (3.0, clause 2.4), with ``{names}`` where their parameters go.

They ask what the specification's ask, in words of their own. Question 15 asks a view, ``{view}``, which each stream makes for
itself. What a profile limits, it limits at the end of the text.
"""

from __future__ import annotations

from typing import Final

QUERIES: Final = range(1, 23)
VIEW_QUERY: Final = 15
"""The query that asks a view."""
LIMITS: Final = {2: 100, 3: 10, 10: 20, 18: 100, 21: 100}
"""Query -> the number of rows that clause 2.1.2.9 and the queries' definitions ask for; HammerDB's ask for all."""

_REVENUE = "l_extendedprice * (1 - l_discount)"
_NET = f"sum({_REVENUE})"

TEXTS: Final[dict[int, str]] = {
    1: f"""
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       {_NET} AS sum_disc_price, sum({_REVENUE} * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
       avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem
WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '{{days}}' DAY
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus""",
    2: """
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM region, nation, supplier, partsupp, part
WHERE r_name = '{region}' AND n_regionkey = r_regionkey AND s_nationkey = n_nationkey AND ps_suppkey = s_suppkey
  AND p_partkey = ps_partkey AND p_size = {size} AND p_type LIKE '%{type}'
  AND ps_supplycost = (
      SELECT min(ps_supplycost) FROM region, nation, supplier, partsupp
      WHERE r_name = '{region}' AND n_regionkey = r_regionkey AND s_nationkey = n_nationkey AND ps_suppkey = s_suppkey
        AND ps_partkey = p_partkey)
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey""",
    3: f"""
SELECT l_orderkey, {_NET} AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = '{{segment}}' AND o_custkey = c_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '{{date}}' AND l_shipdate > DATE '{{date}}'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate""",
    4: """
SELECT o_orderpriority, count(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE '{date}' AND o_orderdate < DATE '{date}' + INTERVAL '3' MONTH
  AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority""",
    5: f"""
SELECT n_name, {_NET} AS revenue
FROM region, nation, customer, orders, lineitem, supplier
WHERE r_name = '{{region}}' AND n_regionkey = r_regionkey AND c_nationkey = n_nationkey AND s_nationkey = c_nationkey
  AND o_custkey = c_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND o_orderdate >= DATE '{{date}}' AND o_orderdate < DATE '{{date}}' + INTERVAL '1' YEAR
GROUP BY n_name
ORDER BY revenue DESC""",
    6: """
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '{date}' AND l_shipdate < DATE '{date}' + INTERVAL '1' YEAR
  AND l_discount BETWEEN {discount} - 0.01 AND {discount} + 0.01 AND l_quantity < {quantity}""",
    7: """
SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
FROM (
    SELECT sold.n_name AS supp_nation, bought.n_name AS cust_nation, extract(YEAR FROM l_shipdate) AS l_year,
           l_extendedprice * (1 - l_discount) AS volume
    FROM supplier, lineitem, orders, customer, nation AS sold, nation AS bought
    WHERE l_suppkey = s_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND sold.n_nationkey = s_nationkey
      AND bought.n_nationkey = c_nationkey AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
      AND (sold.n_name = '{nation1}' AND bought.n_name = '{nation2}'
           OR sold.n_name = '{nation2}' AND bought.n_name = '{nation1}')
) AS shipping
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year""",
    8: """
SELECT o_year, sum(CASE WHEN nation = '{nation}' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
FROM (
    SELECT extract(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, sold.n_name AS nation
    FROM part, lineitem, supplier, nation AS sold, orders, customer, nation AS bought, region
    WHERE p_type = '{type}' AND l_partkey = p_partkey AND s_suppkey = l_suppkey AND sold.n_nationkey = s_nationkey
      AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND bought.n_nationkey = c_nationkey
      AND r_regionkey = bought.n_regionkey AND r_name = '{region}'
      AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
) AS all_nations
GROUP BY o_year
ORDER BY o_year""",
    9: """
SELECT nation, o_year, sum(amount) AS sum_profit
FROM (
    SELECT n_name AS nation, extract(YEAR FROM o_orderdate) AS o_year,
           l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM part, lineitem, partsupp, supplier, nation, orders
    WHERE p_name LIKE '%{colour}%' AND l_partkey = p_partkey AND ps_partkey = l_partkey AND ps_suppkey = l_suppkey
      AND s_suppkey = l_suppkey AND n_nationkey = s_nationkey AND o_orderkey = l_orderkey
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC""",
    10: f"""
SELECT c_custkey, c_name, {_NET} AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
FROM customer, orders, lineitem, nation
WHERE o_custkey = c_custkey AND l_orderkey = o_orderkey AND n_nationkey = c_nationkey AND l_returnflag = 'R'
  AND o_orderdate >= DATE '{{date}}' AND o_orderdate < DATE '{{date}}' + INTERVAL '3' MONTH
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC""",
    11: """
SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value
FROM nation, supplier, partsupp
WHERE n_name = '{nation}' AND s_nationkey = n_nationkey AND ps_suppkey = s_suppkey
GROUP BY ps_partkey
HAVING sum(ps_supplycost * ps_availqty) > (
    SELECT sum(ps_supplycost * ps_availqty) * {fraction}
    FROM nation, supplier, partsupp
    WHERE n_name = '{nation}' AND s_nationkey = n_nationkey AND ps_suppkey = s_suppkey)
ORDER BY value DESC""",
    12: """
SELECT l_shipmode,
       sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
       sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem
WHERE l_orderkey = o_orderkey AND l_shipmode IN ('{mode1}', '{mode2}') AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '{date}' AND l_receiptdate < DATE '{date}' + INTERVAL '1' YEAR
GROUP BY l_shipmode
ORDER BY l_shipmode""",
    13: """
SELECT c_count, count(*) AS custdist
FROM (
    SELECT c_custkey, count(o_orderkey) AS c_count
    FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%{word1}%{word2}%'
    GROUP BY c_custkey
) AS c_orders
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC""",
    14: f"""
SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_REVENUE} ELSE 0 END) / {_NET} AS promo_revenue
FROM lineitem, part
WHERE p_partkey = l_partkey AND l_shipdate >= DATE '{{date}}' AND l_shipdate < DATE '{{date}}' + INTERVAL '1' MONTH""",
    15: """
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM supplier, {view}
WHERE supplier_no = s_suppkey AND total_revenue = (SELECT max(total_revenue) FROM {view})
ORDER BY s_suppkey""",
    16: """
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM part, partsupp
WHERE ps_partkey = p_partkey AND p_brand <> '{brand}' AND p_type NOT LIKE '{type}%' AND p_size IN ({sizes})
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    17: """
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM part, lineitem
WHERE l_partkey = p_partkey AND p_brand = '{brand}' AND p_container = '{container}'
  AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > {quantity})
  AND c_custkey = o_custkey AND l_orderkey = o_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate""",
    19: f"""
SELECT {_NET} AS revenue
FROM lineitem, part
WHERE p_partkey = l_partkey AND p_brand = '{{brand1}}' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
      AND l_quantity BETWEEN {{quantity1}} AND {{quantity1}} + 10 AND p_size BETWEEN 1 AND 5
      AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'
   OR p_partkey = l_partkey AND p_brand = '{{brand2}}' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
      AND l_quantity BETWEEN {{quantity2}} AND {{quantity2}} + 10 AND p_size BETWEEN 1 AND 10
      AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'
   OR p_partkey = l_partkey AND p_brand = '{{brand3}}' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
      AND l_quantity BETWEEN {{quantity3}} AND {{quantity3}} + 10 AND p_size BETWEEN 1 AND 15
      AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'""",
    20: """
SELECT s_name, s_address
FROM supplier, nation
WHERE n_name = '{nation}' AND s_nationkey = n_nationkey AND s_suppkey IN (
    SELECT ps_suppkey FROM partsupp
    WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '{colour}%')
      AND ps_availqty > (
          SELECT 0.5 * sum(l_quantity) FROM lineitem
          WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
            AND l_shipdate >= DATE '{date}' AND l_shipdate < DATE '{date}' + INTERVAL '1' YEAR))
ORDER BY s_name""",
    21: """
SELECT s_name, count(*) AS numwait
FROM nation, supplier, lineitem AS late, orders
WHERE n_name = '{nation}' AND s_nationkey = n_nationkey AND late.l_suppkey = s_suppkey
  AND o_orderkey = late.l_orderkey AND o_orderstatus = 'F' AND late.l_receiptdate > late.l_commitdate
  AND EXISTS (
      SELECT 1 FROM lineitem AS other
      WHERE other.l_orderkey = late.l_orderkey AND other.l_suppkey <> late.l_suppkey)
  AND NOT EXISTS (
      SELECT 1 FROM lineitem AS other
      WHERE other.l_orderkey = late.l_orderkey AND other.l_suppkey <> late.l_suppkey
        AND other.l_receiptdate > other.l_commitdate)
GROUP BY s_name
ORDER BY numwait DESC, s_name""",
    22: """
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (
    SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
    FROM customer
    WHERE substring(c_phone FROM 1 FOR 2) IN ({codes})
      AND c_acctbal > (
          SELECT avg(c_acctbal) FROM customer
          WHERE c_acctbal > 0.00 AND substring(c_phone FROM 1 FOR 2) IN ({codes}))
      AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode""",
}

_VIEW = f"""
CREATE VIEW {{view}} (supplier_no, total_revenue) AS
SELECT l_suppkey, {_NET} FROM lineitem
WHERE l_shipdate >= DATE '{{date}}' AND l_shipdate < DATE '{{date}}' + INTERVAL '3' MONTH
GROUP BY l_suppkey"""


def view_name(stream: int, *, temporary: bool = False) -> str:
    """The view of a stream; a ``temporary`` one is its session's, and in no schema of others."""
    return f"{'pg_temp.' if temporary else ''}revenue{stream}"


def text_of(query: int, parameters: dict[str, str], view: str, *, limited: bool) -> str:
    """A query as it is sent; ``limited`` with the number of rows that the specification asks for."""
    limit = f"\nLIMIT {LIMITS[query]}" if limited and query in LIMITS else ""
    return TEXTS[query].strip().format(view=view, **parameters) + limit


def view_of(parameters: dict[str, str], view: str) -> str:
    """The statement that makes the view for these parameters of its query."""
    return _VIEW.strip().format(view=view, **parameters)
