"""The 22 queries derived from TPC-H (3.0, clause 2.4): texts with ``{names}`` for their parameters, the parameters of each stream, and their order.

They ask what the specification's ask, in words of their own. Question 15 asks a view, ``{view}``, which each stream makes for
itself. What a profile limits, it limits at the end of the text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pgdyno.workload.tables import TPCH_SCHEMA, TpchProfile
from pgdyno.workload.tpcc_conditions import PUBLIC

from .refresh import Refresh, RefreshFunctions

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


Parameters = dict[str, str]
"""Name in the query's text -> what stands there."""

_COLOURS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
tomato turquoise violet wheat white yellow
"""
COLOURS: Final = tuple(_COLOURS.split())
"""Words of the names of parts."""
_KINDS = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
_METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
_SIZES = ("SM", "LG", "MED", "JUMBO", "WRAP")
_BOXES = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
REGION_OF: Final = {nation: region for region, nations in _NATIONS.items() for nation in nations}
_FIRST_WORDS = ("special", "pending", "unusual", "express")
_SECOND_WORDS = ("packages", "requests", "accounts", "deposits")
_FRACTION = 0.0001
"""Of question 11 at scale factor 1."""


def validation(query: int, scale_factor: float = 1.0) -> Parameters:
    """Those whose answers at scale factor 1 are known (the clauses "query validation")."""
    if query == 11:
        return {"nation": "GERMANY", "fraction": _fraction(scale_factor)}
    return dict(_VALIDATION[query])


def drawn(
    query: int, stream: int, query_set: int, *, seed: int, profile: TpchProfile, scale_factor: float
) -> Parameters:
    """Those of a stream in one of its sets: they depend on the arguments and on nothing else."""
    return _DRAWN[query](_Draw(f"{seed}/{stream}/{query_set}/{query}", profile, scale_factor))


class _Draw:
    """Draws of one query."""

    def __init__(self, seed: str, profile: TpchProfile, scale_factor: float) -> None:
        self._random = random.Random(seed)
        self.hammerdb = profile == "hammerdb"
        self.scale_factor = scale_factor

    def between(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def choose(self, of: Sequence[str]) -> str:
        return of[self.between(0, len(of) - 1)]

    def several(self, of: Sequence[str], count: int) -> list[str]:
        """Different ones."""
        return self._random.sample(list(of), count)

    def month(self, first: int, last: int, *, later: bool = False) -> str:
        """The first day of a month, counted from January 1993; HammerDB's are one ``later``."""
        months = self.between(first, last) + (later and self.hammerdb)
        return f"{1993 + months // 12}-{months % 12 + 1:02}-01"

    def year(self) -> str:
        """1 January of 1993 to 1997."""
        return f"{self.between(1993, 1997)}-01-01"

    def nation(self) -> str:
        return self.choose(tuple(REGION_OF))

    def brand(self) -> str:
        return f"Brand#{self.between(1, 5)}{self.between(1, 5)}"


def _fraction(scale_factor: float) -> str:
    return f"{_FRACTION / scale_factor:.10f}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _market_share(draw: _Draw) -> Parameters:
    nation = draw.nation()
    region = "AFRICA" if draw.hammerdb and nation == "EGYPT" else REGION_OF[nation]
    kind = f"{draw.choose(_KINDS)} {draw.choose(_FINISHES)} {draw.choose(_METALS)}"
    return {"nation": nation, "region": region, "type": kind}


def _of_pairs(names: tuple[str, str], of: Sequence[str]) -> Callable[[_Draw], Parameters]:
    return lambda draw: dict(zip(names, draw.several(of, 2), strict=True))


def _stock(draw: _Draw) -> Parameters:
    return {
        "brand": draw.brand(),
        "type": f"{draw.choose(_KINDS)} {draw.choose(_FINISHES)}",
        "sizes": ", ".join(draw.several([str(size) for size in range(1, 51)], 8)),
    }


def _discounted(draw: _Draw) -> Parameters:
    brands = {f"brand{number}": draw.brand() for number in (1, 2, 3)}
    return brands | {
        f"quantity{number}": str(draw.between(max(1, number * 10 - 10), number * 10)) for number in (1, 2, 3)
    }


_DRAWN: dict[int, Callable[[_Draw], Parameters]] = {
    1: lambda draw: {"days": str(draw.between(60, 120))},
    2: lambda draw: {
        "size": str(draw.between(1, 50)),
        "type": draw.choose(_METALS),
        "region": draw.choose(tuple(_NATIONS)),
    },
    3: lambda draw: {"segment": draw.choose(_SEGMENTS), "date": f"1995-03-{draw.between(1, 31):02}"},
    4: lambda draw: {"date": draw.month(0, 57, later=True)},
    5: lambda draw: {"region": draw.choose(tuple(_NATIONS)), "date": draw.year()},
    6: lambda draw: {
        "date": draw.year(),
        "discount": f"0.0{draw.between(2, 9)}",
        "quantity": str(draw.between(24, 25)),
    },
    7: _of_pairs(("nation1", "nation2"), tuple(REGION_OF)),
    8: _market_share,
    9: lambda draw: {"colour": draw.choose(COLOURS)},
    10: lambda draw: {"date": draw.month(1, 24)},
    11: lambda draw: {"nation": draw.nation(), "fraction": _fraction(draw.scale_factor)},
    12: lambda draw: dict(zip(("mode1", "mode2"), draw.several(_MODES, 2), strict=True)) | {"date": draw.year()},
    13: lambda draw: {"word1": draw.choose(_FIRST_WORDS), "word2": draw.choose(_SECOND_WORDS)},
    14: lambda draw: {"date": draw.month(0, 59, later=True)},
    15: lambda draw: {"date": draw.month(0, 57, later=True)},
    16: _stock,
    17: lambda draw: {"brand": draw.brand(), "container": f"{draw.choose(_SIZES)} {draw.choose(_BOXES)}"},
    18: lambda draw: {"quantity": str(draw.between(312, 315))},
    19: _discounted,
    20: lambda draw: {"colour": draw.choose(COLOURS), "date": draw.year(), "nation": draw.nation()},
    21: lambda draw: {"nation": draw.nation()},
    22: lambda draw: {"codes": _quoted(draw.several([str(code) for code in range(10, 35)], 7))},
}
_VALIDATION: dict[int, Parameters] = {
    1: {"days": "90"},
    2: {"size": "15", "type": "BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "date": "1995-03-15"},
    4: {"date": "1993-07-01"},
    5: {"region": "ASIA", "date": "1994-01-01"},
    6: {"date": "1994-01-01", "discount": "0.06", "quantity": "24"},
    7: {"nation1": "FRANCE", "nation2": "GERMANY"},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    9: {"colour": "green"},
    10: {"date": "1993-10-01"},
    12: {"mode1": "MAIL", "mode2": "SHIP", "date": "1994-01-01"},
    13: {"word1": "special", "word2": "requests"},
    14: {"date": "1995-09-01"},
    15: {"date": "1996-01-01"},
    16: {"brand": "Brand#45", "type": "MEDIUM POLISHED", "sizes": "49, 14, 23, 45, 19, 3, 36, 9"},
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": "300"},
    19: {"brand1": "Brand#12", "brand2": "Brand#23", "brand3": "Brand#34", "quantity1": "1", "quantity2": "10",
         "quantity3": "20"},
    20: {"colour": "forest", "date": "1994-01-01", "nation": "CANADA"},
    21: {"nation": "SAUDI ARABIA"},
    22: {"codes": "'13', '31', '23', '29', '30', '18', '17'"},
}  # fmt: skip


POWER: Final = 0
"""The stream that goes alone."""
ORDERS: Final = tuple(
    tuple(map(int, row.split()))
    for row in (
        "14 2 9 20 6 17 18 8 21 13 3 22 16 4 11 15 1 10 19 5 7 12",
        "21 3 18 5 11 7 6 20 17 12 16 15 13 10 2 8 14 19 9 22 1 4",
        "6 17 14 16 19 10 9 2 15 8 5 22 12 7 13 18 1 4 20 3 11 21",
        "8 5 4 6 17 7 1 18 22 14 9 10 15 11 20 2 21 19 13 16 12 3",
        "5 21 14 19 15 17 12 6 4 9 8 16 11 2 10 18 1 13 7 22 3 20",
        "21 15 4 6 7 16 19 18 14 22 11 13 3 1 2 5 8 20 12 17 10 9",
        "10 3 15 13 6 8 9 7 4 11 22 18 12 1 5 16 2 14 19 20 17 21",
        "18 8 20 21 2 4 22 17 1 11 9 19 3 13 5 7 10 16 6 14 15 12",
        "19 1 15 17 5 8 9 12 14 7 4 3 20 16 6 22 10 13 2 21 18 11",
        "8 13 2 20 17 3 6 21 18 11 19 10 15 4 22 1 7 12 9 14 5 16",
        "6 15 18 17 12 1 7 2 22 13 21 10 14 9 3 16 20 19 11 4 8 5",
        "15 14 18 17 10 20 16 11 1 8 4 22 5 12 3 9 21 2 13 6 19 7",
        "1 7 16 17 18 22 12 6 8 9 11 4 2 5 20 21 13 10 19 3 14 15",
        "21 17 7 3 1 10 12 22 9 16 6 11 2 4 5 14 8 20 13 18 15 19",
        "2 9 5 4 18 1 20 15 16 17 7 21 13 14 19 8 22 11 10 3 12 6",
        "16 9 17 8 14 11 10 12 6 21 7 3 15 5 22 20 1 13 19 2 4 18",
        "1 3 6 5 2 16 14 22 17 20 4 9 10 11 15 8 12 19 18 13 7 21",
        "3 16 5 11 21 9 2 15 10 18 17 7 8 19 14 13 1 4 22 20 6 12",
        "14 4 13 5 21 11 8 6 3 17 2 20 1 19 10 9 12 18 15 7 22 16",
        "4 12 22 14 5 15 16 2 8 10 17 9 21 7 3 6 13 18 11 20 19 1",
        "16 15 14 13 4 22 18 19 7 1 12 17 5 10 20 3 9 21 11 2 6 8",
        "20 14 21 12 15 17 4 19 13 10 11 1 16 5 18 7 8 22 9 6 3 2",
        "16 14 13 2 21 10 11 4 1 22 18 12 19 5 7 8 6 3 15 20 9 17",
        "18 15 9 14 12 2 8 11 22 21 16 1 6 17 5 10 19 4 20 13 3 7",
        "7 3 10 14 13 21 18 6 20 4 9 8 22 15 2 1 5 12 19 17 11 16",
        "18 1 13 7 16 10 14 2 19 5 21 11 22 15 8 17 20 3 4 12 6 9",
        "13 2 22 5 11 21 20 14 7 10 4 9 19 18 6 3 1 8 15 12 17 16",
        "14 17 21 8 2 9 6 4 5 13 22 7 15 3 1 18 16 11 10 12 20 19",
        "10 22 1 12 13 18 21 20 2 14 16 7 15 3 4 17 5 19 6 8 9 11",
        "10 8 9 18 12 6 1 5 20 11 17 22 16 3 13 2 15 21 14 19 7 4",
        "7 17 22 5 3 10 13 18 9 1 14 15 21 19 16 12 8 6 11 20 4 2",
        "2 9 21 3 4 7 1 11 16 5 20 19 18 8 17 13 10 12 15 6 14 22",
        "15 12 8 4 22 13 16 17 18 3 7 5 6 1 9 11 21 10 14 20 19 2",
        "15 16 2 11 17 7 5 14 20 4 21 3 10 9 12 8 13 6 18 19 22 1",
        "1 13 11 3 4 21 6 14 15 22 18 9 7 5 10 20 12 16 17 8 19 2",
        "14 17 22 20 8 16 5 10 1 13 2 21 12 9 4 18 3 7 6 19 15 11",
        "9 17 7 4 5 13 21 18 11 3 22 1 6 16 20 14 15 10 8 2 12 19",
        "13 14 5 22 19 11 9 6 18 15 8 10 7 4 17 16 3 1 12 2 21 20",
        "20 5 4 14 11 1 6 16 8 22 7 3 2 12 21 19 17 13 10 15 18 9",
        "3 7 14 15 6 5 21 20 18 10 4 16 19 1 13 9 8 17 11 12 22 2",
        "13 15 17 1 22 11 3 4 7 20 14 21 9 8 2 18 16 6 10 12 5 19",
    )
)
"""By the number of the stream; those beyond begin again at the first."""


def order_of(stream: int) -> tuple[int, ...]:
    """The queries of a stream in their order."""
    return ORDERS[stream % len(ORDERS)]


CHECK_CLIENT = "10s"
"""How often a server looks whether this machine is still there while it works on a query (PostgreSQL 14 and later)."""


@dataclass(frozen=True)
class Streams:
    """Streams of queries."""

    profile: TpchProfile
    scale_factor: float
    clients: int
    query_sets: int
    queries: Sequence[int]
    degree: int | None
    seed: int
    refresh: Refresh = "none"
    schema: str = TPCH_SCHEMA

    @property
    def numbers(self) -> range:
        """One goes as the power run does; several are numbered from 1."""
        return range(POWER, 1) if self.clients == 1 else range(1, self.clients + 1)

    @property
    def planned(self) -> int:
        """Queries that they run."""
        return len(self.queries) * self.query_sets * self.clients

    @property
    def functions(self) -> RefreshFunctions | None:
        """The refresh functions: a set for each set of queries of a stream; None without."""
        if self.refresh == "none":
            return None
        return RefreshFunctions(self.profile, self.scale_factor, self.clients * self.query_sets, self.schema)

    @property
    def _temporary(self) -> bool:
        """True if views are temporary ones: in a schema of others nothing is made."""
        return self.schema == PUBLIC

    def document(self, dsn: str, limit_s: float, folder: Path | None = None) -> dict[str, Any]:
        """The first line of the process's input. ``limit_s`` is how long all of it may take, ``folder`` has what is refreshed."""
        functions = self.functions
        settings = [f"SET search_path = {self.schema}", f"SET client_connection_check_interval = '{CHECK_CLIENT}'"]
        if self.degree is not None:
            settings.append(f"SET max_parallel_workers_per_gather = {self.degree}")
        streams: list[dict[str, Any]] = [self._stream(number) for number in self.numbers]
        if functions is not None and self.refresh == "stream":
            steps = [step for number in range(1, functions.sets + 1) for step in functions.steps(number)]
            streams.append({"stream": "refresh", "steps": steps, "after": []})
        return {
            "dsn": dsn,
            "settings": settings,
            "limit_s": limit_s,
            "streams": streams,
            "refresh": None if functions is None or folder is None else functions.document(folder),
        }

    def _stream(self, number: int) -> dict[str, Any]:
        view = view_name(number, temporary=self._temporary)
        drop = [f"DROP VIEW IF EXISTS {view}"] if VIEW_QUERY in self.queries else []
        return {"stream": number, "steps": list(self._steps(number)), "after": drop}

    def _steps(self, number: int) -> Iterator[dict[str, Any]]:
        results = [query for query in order_of(number) if query in self.queries]
        functions = self.functions if self.refresh == "power" else None
        for query_set in range(1, self.query_sets + 1):
            before, after = ((), ()) if functions is None else ((step,) for step in functions.steps(query_set))
            yield from before
            for place, query in enumerate(results, 1):
                parameters = drawn(
                    query, number, query_set, seed=self.seed, profile=self.profile, scale_factor=self.scale_factor
                )
                document = {"set": query_set, "place": place, "query": query, "parameters": parameters}
                limited, temporary = self.profile == "spec", self._temporary
                yield document | step(query, parameters, number, limited=limited, temporary=temporary)
            yield from after


def step(query: int, parameters: Parameters, stream: int, *, limited: bool, temporary: bool = False) -> dict[str, Any]:
    """The statements of a query: those before it, which are not timed, and its own."""
    view = view_name(stream, temporary=temporary)
    before = [f"DROP VIEW IF EXISTS {view}", view_of(parameters, view)] if query == VIEW_QUERY else []
    return {"before": before, "text": text_of(query, parameters, view, limited=limited)}
