"""Circles of files are found, in Rust and in Python."""

from __future__ import annotations

import pytest

from tests.lint.conftest import Project
from tools.lint import circles
from tools.lint.imports import python, rust

CRATE = {"crates/x/Cargo.toml": "", "crates/x/src/lib.rs": "mod a;\nmod b;\npub use a::A;\n"}
A_USES_B = {"crates/x/src/a.rs": "use crate::b::B;\npub struct A(B);\n"}
B_USES_A = {"crates/x/src/b.rs": "pub struct B;\nfn of(a: &crate::A) {}\n"}


def test_a_circle_of_files_of_a_crate_is_found_through_what_the_crate_re_exports(project: Project) -> None:
    root = project({**CRATE, **A_USES_B, **B_USES_A})
    assert [str(finding) for finding in circles.check(root)] == [
        "crates/x/src/a.rs: imports itself through crates/x/src/b.rs: move what they share below them"
    ]


def test_files_that_use_each_other_in_one_direction_are_no_circle(project: Project) -> None:
    root = project({**CRATE, **A_USES_B, "crates/x/src/b.rs": "pub struct B;\n"})
    assert circles.check(root) == []


@pytest.mark.parametrize(
    "text",
    [
        "use super::a::{self, A};",
        "use super::a as other;",
        "use {super::a::A};",
        "use crate::a::*;",
        "fn f() -> super::a::A { todo!() }",
        "use super::A;",
        "use crate::{\n    a::{A as Other},\n};",
        "use self::super::a::A;",
    ],
)
def test_each_way_to_name_another_file_counts(text: str) -> None:
    texts = {"lib.rs": "mod a; mod b; use a::A;", "a.rs": "use crate::b::B; pub struct A;", "b.rs": text}
    assert rust.of_crate(texts)["b.rs"] == {"a.rs"}


@pytest.mark.parametrize(
    "text",
    [
        "// use crate::a::A;",
        "/* use crate::a::A; */",
        'const TEXT: &str = "use crate::a::A;";',
        '#[cfg(test)]\nmod tests {\n    use crate::a::A;\n    fn f() { "}" }\n}',
        "use std::a::A;",
        "use serde::{a::A};",
    ],
)
def test_what_is_no_use_of_another_file_does_not_count(text: str) -> None:
    assert rust.of_crate({"lib.rs": "mod a; mod b;", "a.rs": "pub struct A;", "b.rs": text})["b.rs"] == set()


def test_a_module_that_re_exports_its_children_does_not_use_them_and_one_that_works_with_them_does() -> None:
    child = {"folder/child.rs": "pub struct Child;"}
    facade = {"lib.rs": "mod folder;", "folder/mod.rs": "mod child;\npub use child::Child;", **child}
    assert rust.of_crate(facade)["folder/mod.rs"] == set()
    worker = {**facade, "folder/mod.rs": "mod child;\npub use child::Child;\nfn f() -> Child { child::make() }"}
    assert rust.of_crate(worker)["folder/mod.rs"] == {"folder/child.rs"}


def test_a_circle_of_python_files_counts_imports_for_types_and_inside_functions(project: Project) -> None:
    root = project(
        {
            "python/pgdyno/__init__.py": "",
            "python/pgdyno/x/__init__.py": "from pgdyno.x.a import A\n\n__all__ = ['A']\n",
            "python/pgdyno/x/a.py": "if TYPE_CHECKING:\n    from pgdyno.x.b import B\n",
            "python/pgdyno/x/b.py": "def f():\n    from pgdyno.x import c\n",
            "python/pgdyno/x/c.py": "from pgdyno.x import A\n",
        }
    )
    [result] = circles.check(root)
    assert result.path == "python/pgdyno/x/a.py"
    assert result.message.startswith("imports itself through python/pgdyno/x/b.py, python/pgdyno/x/c.py: move")


def test_relative_imports_of_python_are_followed() -> None:
    texts = {"p/__init__.py": "from .a import A\n", "p/a.py": "from . import b\n", "p/b.py": "from .a import A\n"}
    assert python.of_package(texts) == {"p/__init__.py": set(), "p/a.py": {"p/b.py"}, "p/b.py": {"p/a.py"}}
