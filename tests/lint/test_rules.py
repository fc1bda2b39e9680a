"""Each rule finds what breaks it, says what to do, and leaves what is right alone."""

from __future__ import annotations

import pytest

from tests.lint.conftest import Project
from tools.lint import (
    architecture,
    catalogue,
    clock_free,
    crates,
    exceptions,
    hosts,
    kinds,
    links,
    remedies,
    sizes,
    sleeps,
    stages,
    start_up,
    words,
)

LONG = "def long():\n" + "    x = 1\n" * 75


def test_sizes(project: Project) -> None:
    root = project(
        {"a.py": LONG, "b.rs": "//\n" * 701, "c.py": 'def f():\n    """' + "\n" * 100 + '    """\n    return 1\n'}
    )
    texts = {str(finding) for finding in sizes.check(root)}
    assert texts == {
        "a.py:1: a.py::long has 76 lines, 70 are allowed: split the function",
        "b.rs: b.rs has 701 lines, 700 are allowed: split the file",
    }


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


def test_clock_free_crates_have_every_ban_and_its_reason(project: Project) -> None:
    own = "too-many-lines-threshold = 70\ndisallowed-methods = [{ path = 'std::time::Instant::now' }]\n"
    root = project({"clippy.toml": "too-many-lines-threshold = 70\n", "crates/volume/clippy.toml": own})
    messages = [finding.message for finding in clock_free.check(root)]
    assert "ban std::time::SystemTime::now in `disallowed-methods` again" in messages
    assert "ban std::collections::HashMap in `disallowed-types` again" in messages
    assert "say the reason of the ban of std::time::Instant::now" in messages
    assert "`catalog` is clock-free and needs its bans: copy another such crate's" in messages


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


def test_stages(project: Project) -> None:
    root = project(
        {
            f"{stages.STAGES}/mod.rs": "",
            f"{stages.STAGES}/lonely.rs": "",
            f"{stages.STAGES}/whole.rs": "#[cfg(test)] mod tests {}",
            f"{stages.PAGES}/whole.md": "",
            f"{stages.PAGES}/old.md": "",
        }
    )
    texts = [str(finding) for finding in stages.check(root)]
    assert len(texts) == 3
    assert texts[0].endswith(f"has no test: write {stages.TESTS}/lonely.rs")
    assert texts[1].endswith(f"has no page: explain the idea in {stages.PAGES}/lonely.md")
    assert texts[2].startswith(f"{stages.PAGES}/old.md: is about no stage")


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


def test_hosts(project: Project) -> None:
    home = "/ho" + "me/ada/x"  # in two parts, so that this file passes the rule itself
    root = project(
        {
            "a.md": f"see {home}\n",
            "requirements.lock": "--index-url https://mirror.example/simple\nclick==8 --hash=sha256:00\n",
            "Cargo.lock": f'source = "{hosts.CRATES_INDEX}"\n',
        }
    )
    (root / "b.md").write_text(f"cd {root}/x\n")
    texts = [str(finding) for finding in hosts.check(root)]
    assert len(texts) == 3
    assert texts[0].startswith("a.md:1:")
    assert "this clone's own path" in texts[1]
    assert texts[2].startswith("requirements.lock:1: https://mirror.example/simple binds the lock file to a host")


def test_exceptions(project: Project) -> None:
    marks = [
        "no" + "qa",
        "no" + "qa: S704",
        "no" + "qa: S704 (drawn elsewhere)",
        "type: " + "ignore[arg-type]  # said below",
    ]
    reasoned = '#[allow(dead_code, reason = "each test uses a part")]\n'
    root = project(
        {
            "a.py": "".join(f"x = 1  # {mark}\n" for mark in marks),
            "b.rs": "#[allow(dead_code)]\n" + reasoned + '#[allow(clippy::too_many_lines, reason = "long")]\n',
            "src/c.rs": '#[expect(clippy::disallowed_methods, reason = "just once")]\n',
            "tests/c.rs": '#[expect(clippy::disallowed_methods, reason = "it compares with exp")]\n',
        }
    )
    texts = [str(finding) for finding in exceptions.check(root)]
    assert len(texts) == 5
    assert texts[0] == "a.py:1: `noqa` of everything: name the rule that does not fit here"
    assert texts[1].startswith("a.py:2:") and "write the reason behind it" in texts[1]
    assert texts[2].startswith("b.rs:1:") and 'add `reason = "…"`' in texts[2]
    assert texts[3] == "b.rs:3: clippy::too_many_lines has no exceptions: change the code"
    assert texts[4] == "src/c.rs:1: clippy::disallowed_methods has no exceptions: change the code"


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


def test_kinds(project: Project) -> None:
    asks = 'def f(world, kind):\n    return world.kind == "real" or kind in ("load", "idle")\n'
    homes = {"python/pgdyno/world/b.py": 'x.kind == "real"\n', "python/pgdyno/workload/kind/c.py": 'x.kind == "load"\n'}
    root = project({"python/pgdyno/a.py": asks, "tests/c.py": asks, **homes})
    assert [str(finding) for finding in kinds.check(root)] == [
        "python/pgdyno/a.py:2: asks whether the workload is 'idle': ask it for what you need (workload/kind/base.py)",
        "python/pgdyno/a.py:2: asks whether the workload is 'load': ask it for what you need (workload/kind/base.py)",
        "python/pgdyno/a.py:2: asks whether the world is 'real': ask it for what you need (world/base.py)",
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


def test_architecture(project: Project) -> None:
    contract = "[[tool.importlinter.contracts]]\ntype = 'layers'\nlayers = ['cli', 'a | b', 'errors']\n"
    parts = {f"python/pgdyno/{name}": "" for name in ("cli/main.py", "a.py", "b/__init__.py", "errors.py", "lost.py")}
    root = project({"pyproject.toml": contract, "crates/volume/Cargo.toml": "", **parts})
    (missing,) = architecture.check(root)
    assert str(missing) == "ARCHITECTURE.md: is missing: write where everything is"
    (root / "ARCHITECTURE.md").write_text("volume\n\n    Python   cli → {b | a} → errors\n")
    assert [finding.message.split(":")[0] for finding in architecture.check(root)] == ["does not name `lost`"]
    (root / "ARCHITECTURE.md").write_text("lost volume\n\n    Python   cli → errors → {a | b}\n")
    (wrong,) = architecture.check(root)
    assert str(wrong) == (
        "ARCHITECTURE.md:3: its layers are not those of pyproject.toml; write `Python   cli → {a | b} → errors`"
    )


BROKEN = {
    "leave the flag away": "leave the flag away",
    "mend the file": "mend",
    "the load begins anew": "anew",
    "strangers use the disk": "strangers",
    "it is nobody's": "nobody",
    "`x` is no name of a table": "is no",
    "slowed so many times": "so many",
    "an interrupted load goes on": "goes on",
    "a server that exists already": "exists already",
    "before the run was begun": "was begun",
    "the limit is told": "is told",
    "30 s unless told otherwise": "unless told",
    "it can be had for ever": "can be had",
    "a `nan` is no number": "is no",
    "the size is reckoned": "reckoned",
    "what speaks against the run": "speaks against",
    "it is held against the original": "held against",
    "its cost is taken away": "taken away",
    "a table of ours": "of ours",
    "3,000 tpmC": "tpmC",
    "because of the laboratory": "the laboratory",
    "Of a run, the seconds": "Of a",
}
PLAIN = """There is no table. 1 is no longer than 2. So many that it fails. It goes on the volume. They cannot be told apart.
Arms of a run. The user `nobody` or nobody, and `leave it away` in code.
```
mend it anew
```
"""


@pytest.mark.parametrize("text", BROKEN)
def test_words(project: Project, text: str) -> None:
    files = {"docs/a.md": f"# A\n\n{text}\n", "tests/c.py": f"x = {text!r}\n"}
    root = project(files | {"python/pgdyno/b.py": f"x = {text!r}\n", "python/pgdyno/c.py": f"x = 1  # {text}\n"})
    result = words.check(root)
    assert {finding.path for finding in result} == {"docs/a.md", "python/pgdyno/b.py", "python/pgdyno/c.py"}
    assert any(str(finding).startswith(f"docs/a.md:3: `{BROKEN[text]}`: write ") for finding in result)


def test_a_value_within_a_string_does_not_hide_a_phrase(project: Project) -> None:
    (result,) = words.check(project({"python/pgdyno/a.py": 'x = f"leave {flag} away"\n'}))
    assert result.message.startswith("`leave {} away`: write omit")


def test_words_has_an_example_of_each_rule() -> None:
    assert {to for text in BROKEN for _, _, to in words.phrases(text)} == {to for _, to in words.PATTERNS}


def test_plain_words_and_code_are_left_alone(project: Project) -> None:
    released = "# Changelog\n\n## 2\n\nPlain.\n\n## 1\n\nMend it anew.\n"
    assert words.check(project({"README.md": PLAIN, "CHANGELOG.md": released, "docs/reference/a.md": "anew\n"})) == []
