"""The parameters of the 22 queries: those of the validation, and those drawn for a stream.

Ranges are the specification's (3.0, clause 2.4: "substitution parameters"); the profile ``hammerdb`` takes those of HammerDB 6.0
where they differ: months of three queries begin and end one later, and it takes Egypt for a nation of Africa.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from pgdyno.workload.tables import TpchProfile

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

    def one(self, of: Sequence[str]) -> str:
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
        return self.one(tuple(REGION_OF))

    def brand(self) -> str:
        return f"Brand#{self.between(1, 5)}{self.between(1, 5)}"


def _fraction(scale_factor: float) -> str:
    return f"{_FRACTION / scale_factor:.10f}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _market_share(draw: _Draw) -> Parameters:
    nation = draw.nation()
    region = "AFRICA" if draw.hammerdb and nation == "EGYPT" else REGION_OF[nation]
    kind = f"{draw.one(_KINDS)} {draw.one(_FINISHES)} {draw.one(_METALS)}"
    return {"nation": nation, "region": region, "type": kind}


def _of_pairs(names: tuple[str, str], of: Sequence[str]) -> Callable[[_Draw], Parameters]:
    return lambda draw: dict(zip(names, draw.several(of, 2), strict=True))


def _stock(draw: _Draw) -> Parameters:
    return {
        "brand": draw.brand(),
        "type": f"{draw.one(_KINDS)} {draw.one(_FINISHES)}",
        "sizes": ", ".join(draw.several([str(size) for size in range(1, 51)], 8)),
    }


def _discounted(draw: _Draw) -> Parameters:
    brands = {f"brand{number}": draw.brand() for number in (1, 2, 3)}
    return brands | {
        f"quantity{number}": str(draw.between(max(1, number * 10 - 10), number * 10)) for number in (1, 2, 3)
    }


_DRAWN: dict[int, Callable[[_Draw], Parameters]] = {
    1: lambda draw: {"days": str(draw.between(60, 120))},
    2: lambda draw: {"size": str(draw.between(1, 50)), "type": draw.one(_METALS), "region": draw.one(tuple(_NATIONS))},
    3: lambda draw: {"segment": draw.one(_SEGMENTS), "date": f"1995-03-{draw.between(1, 31):02}"},
    4: lambda draw: {"date": draw.month(0, 57, later=True)},
    5: lambda draw: {"region": draw.one(tuple(_NATIONS)), "date": draw.year()},
    6: lambda draw: {
        "date": draw.year(),
        "discount": f"0.0{draw.between(2, 9)}",
        "quantity": str(draw.between(24, 25)),
    },
    7: _of_pairs(("nation1", "nation2"), tuple(REGION_OF)),
    8: _market_share,
    9: lambda draw: {"colour": draw.one(COLOURS)},
    10: lambda draw: {"date": draw.month(1, 24)},
    11: lambda draw: {"nation": draw.nation(), "fraction": _fraction(draw.scale_factor)},
    12: lambda draw: dict(zip(("mode1", "mode2"), draw.several(_MODES, 2), strict=True)) | {"date": draw.year()},
    13: lambda draw: {"word1": draw.one(_FIRST_WORDS), "word2": draw.one(_SECOND_WORDS)},
    14: lambda draw: {"date": draw.month(0, 59, later=True)},
    15: lambda draw: {"date": draw.month(0, 57, later=True)},
    16: _stock,
    17: lambda draw: {"brand": draw.brand(), "container": f"{draw.one(_SIZES)} {draw.one(_BOXES)}"},
    18: lambda draw: {"quantity": str(draw.between(312, 315))},
    19: _discounted,
    20: lambda draw: {"colour": draw.one(COLOURS), "date": draw.year(), "nation": draw.nation()},
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
