"""Each rule finds what breaks it, says what to do, and leaves what is right alone."""

from __future__ import annotations

import pytest

from tests.lint.conftest import Project
from tools.lint import (
    catalogue,
    clock_free,
    crates,
    links,
    remedies,
    sleeps,
    start_up,
)


def test_crates(project: Project) -> None:
    root = project(
        {
            "crates/volume/Cargo.toml": "[dependencies]\nserde = '1'\nlibc = '1'\n[dev-dependencies]\nproptest = '1'\n",
            "crates/catalog/Cargo.toml": "[dependencies]\npgdyno-volume = {}\npgdyno-emulate = {}\n",
            "crates/unheard/Cargo.toml": "",
            "crates/crash/Cargo.toml": "[lib]\ntest = false\n",
            "crates/crash/src/a.rs": "#[test]\nfn f() {}\n",
            "crates/host/Cargo.toml": "[[bin]]\ntest = false\n",
            "crates/host/src/main.rs": "fn main() {}\n",
        }
    )
    texts = [str(finding) for finding in crates.check(root)]
    assert len(texts) == 4
    assert "`catalog` may not use `emulate`" in texts[0]
    assert texts[1].startswith("crates/crash/src/a.rs") and "this test is never run" in texts[1]
    assert "tools/lint/crates.py does not say" in texts[2]
    assert "`volume` may not use `libc`: hand in its result" in texts[3]


def test_clock_free_crates_have_the_same_bans_and_no_exceptions(project: Project) -> None:
    bans = "too-many-lines-threshold = 60\ndisallowed-methods = [{ path = 'std::time::Instant::now' }]\n"
    crate = {f"crates/{name}/clippy.toml": bans for name in clock_free.CRATES if name != "dataset"}
    allowed = "\n#[expect(clippy::disallowed_methods, reason = 'just once')]\nfn f() {}\n"
    files = {"crates/catalog/src/a.rs": allowed, "crates/catalog/tests/a.rs": allowed, "crates/host/src/a.rs": allowed}
    root = project({**crate, **files, "clippy.toml": "too-many-lines-threshold = 70\n", "crates/crash/clippy.toml": ""})
    assert [str(finding) for finding in clock_free.check(root)] == [
        "crates/crash/clippy.toml: `crash` is clock-free and needs the bans of crates/volume/clippy.toml: copy it",
        "crates/dataset/clippy.toml: `dataset` is clock-free and needs the bans of crates/volume/clippy.toml: copy it",
        "crates/volume/clippy.toml: set `too-many-lines-threshold = 70` as the workspace's clippy.toml does",
        "crates/catalog/src/a.rs:2: the bans of clock-free crates have no exceptions",
    ]


def test_catalogue(project: Project) -> None:
    root = project(
        {
            "catalog/volumes/x.toml": """
schema_version = 1
name = "x"
[sources.guide]
title = "A guide"
[size]
good = { value = 1, source = "guide", date = 2026-11-21 }
bare = 3
undated = { value = 2, source = "guide" }
hearsay = { value = [1, 2], source = "someone", date = 2026-11-21 }
[[price]]
above = 3
usd = { value = 0.1, date = 2026-11-21 }
"""
        }
    )
    messages = [finding.message for finding in catalogue.check(root)]
    assert len(messages) == 4
    assert messages[0].startswith("size.bare is a bare value")
    assert messages[1].startswith("size.undated needs `date`")
    assert messages[2].startswith("size.hearsay needs `source`, one of [sources] (there are: guide)")
    assert messages[3].startswith("price[1].usd needs `source`")


def test_a_table_of_the_catalogue_has_source_and_date_by_the_column(project: Project) -> None:
    head = "rows = 'x.csv'\n[sources.api]\ntitle = 'The API'\n[columns]\n"
    columns = "vcpus = { source = 'api', date = 2026-10-01 }\nusd = { source = 'someone' }\ngone = { source = 'api' }\n"
    rows = "name,vcpus,usd,memory\na,1,0.1,2\na,1,0.1,2\n"
    beside = "[xen]\nmost = 3\nfamilies = { value = ['m1'], source = 'hearsay', date = 2026-10-01 }\n"
    root = project({"catalog/instances/x.toml": head + columns + beside, "catalog/instances/x.csv": rows})
    assert [finding.message for finding in catalogue.check(root)] == [
        "xen.most is a bare value: write { value = …, source = …, date = … }",
        "xen.families needs `source`, one of [sources] (there are: api)",
        "columns.usd needs `source`, one of [sources] (there are: api)",
        "columns.usd needs `date`, when its source said so (as 2026-11-21, without quotes)",
        "column memory of x.csv needs [columns] memory = { source = …, date = … }",
        "x.csv has no column gone: remove it from [columns]",
        "a is there twice in x.csv: remove one",
    ]


def test_sleeps(project: Project) -> None:
    root = project(
        {
            "tests/test_a.py": "import time\ntime.sleep(1)\n",
            "tests/test_b.py": "from time import sleep\n",
            "python/c.py": "import time\ntime.sleep(1)\n",
            "tests/test_e.py": "import subprocess\nsubprocess.run(['sleep', '1'])\nsubprocess.Popen(['sleep', '9'])\n",
            "tests/test_f.py": "from asyncio import sleep\n",
            "crates/x/tests/d.rs": "fn f() { std::thread::sleep(d) }\n",
            "crates/x/src/g.rs": "fn f() { thread::sleep(d) }\n#[cfg(test)]\nmod tests { fn g() { thread::sleep(d) } }\n",
        }
    )
    assert [(finding.path, finding.line) for finding in sleeps.check(root)] == [
        ("crates/x/src/g.rs", 3),
        ("crates/x/tests/d.rs", 1),
        ("tests/test_a.py", 2),
        ("tests/test_b.py", 1),
        ("tests/test_e.py", 2),
        ("tests/test_f.py", 1),
    ]


def test_links(project: Project) -> None:
    text = "# A title, `here`\n[a](b.md) [c](gone.md) [d](#a-title-here) [e](b.md#nowhere) [f](https://example.org)\n"
    files = {"a.md": text + "```\n[no link](x.md)\n```\n", "b.md": "# B\n", "docs/decision/0001-why.md": ""}
    root = project(files | {"c.rs": "// docs/decision/0001\n// docs/decision/0002, docs/concept/volume/x.md\n"})
    assert [str(finding) for finding in links.check(root)] == [
        "a.md:2: gone.md does not exist: repair the link",
        "a.md:2: b.md#nowhere: there is no such heading",
        "c.rs:2: docs/decision/0002 does not exist: write it, or name another",
        "c.rs:2: docs/concept/volume/x.md does not exist: write it, or name another",
    ]


def test_remedies(project: Project) -> None:
    tree = "class PgdynoError(Exception): ...\nclass HostError(PgdynoError): ...\nclass RunInvalid(PgdynoError): ...\n"
    uses = (
        'raise HostError("no")\nraise errors.PgdynoError("no", remedy="do")\nraise RunInvalid("no")\n'
        'raise HostError("no", **more)\nraise ValueError("no")\n'
    )
    root = project({remedies.ERRORS_FILE: tree, "python/pgdyno/a.py": uses, "tests/a.py": uses})
    assert [str(finding) for finding in remedies.check(root)] == [
        "python/pgdyno/a.py:1: HostError without a remedy: say what to do about it, with `remedy=`"
    ]


def test_start_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = "import sys, time\nwhile 'slow' in sys.argv and time.process_time() < 1: pass\n"
    commands = {f"python/pgdyno/cli/{name}.py": "\ndef command() -> None: ...\n" for name in ("quick", "slow")}
    # With an `__init__.py`, since an installed package comes before a folder without one.
    root = project({"python/pgdyno/__init__.py": "", "python/pgdyno/__main__.py": busy, **commands})
    monkeypatch.setattr(start_up, "STARTS", 2)
    (result,) = start_up.check(root)
    assert "`pgdyno slow --help` takes" in result.message
    assert "import inside the functions that need it" in result.message
