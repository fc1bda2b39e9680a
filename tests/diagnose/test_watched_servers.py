"""The guide's section on servers that pgdyno did not make: it stands as the program writes it."""

from __future__ import annotations

from tools.watched.__main__ import BEGIN, END, GUIDE, Watched, render
from tools.watched.scenario import ALL


def test_each_screen_stands_below_its_server_and_its_load() -> None:
    text = render([Watched("the embedded PostgreSQL 18", "idle", "limit     nothing binds\n", {})])
    assert text.startswith(BEGIN)
    assert text.endswith(END)
    assert "**The embedded PostgreSQL 18**, idle:\n\n```text\nlimit     nothing binds\n```" in text


def test_the_guide_has_every_load_on_both_servers() -> None:
    section = GUIDE.read_text().partition(BEGIN)[2].partition(END)[0]
    for item in ALL:
        servers = ["PostgreSQL 15 of Debian's package"] + ([] if item.tls else ["The embedded PostgreSQL 18"])
        for server in servers:
            assert f"**{server}**, {item.title}:" in section
    assert section.count("limit     ") == section.count("```text") == 2 * len(ALL) - 1
