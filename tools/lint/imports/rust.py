"""Which file of a crate uses which: by ``use``, by a path in the code, or through what a module re-exports.

Read with regular expressions, since no parser of Rust is at hand. What the compiler sees and this does not: paths made by
macros, and modules written inside a file other than tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL)
_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_MODULE = re.compile(r"\bmod\s+(\w+)\s*;")
_TESTS = re.compile(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*mod\s+\w+\s*(;|\{)")
_PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")
_DEFINED = r"\b(?:fn|struct|enum|trait|type|const|static|union|mod|macro_rules!)\s+(?:mut\s+)?{}\b"


@dataclass
class _Module:
    """One file. ``names`` has what its ``use`` bind, each with the path that it stands for."""

    path: tuple[str, ...]
    file: str
    code: str
    children: set[str]
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    globs: list[tuple[str, ...]] = field(default_factory=list)
    re_exports: set[str] = field(default_factory=set)


def of_crate(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """For each file the other files that it uses. ``texts`` has every file by its path below ``src``."""
    modules = {module.path: module for module in map(_read, texts, texts.values())}
    return {module.file: _used(module, modules) - {module.file} for module in modules.values()}


def _read(file: str, text: str) -> _Module:
    code = _without_tests(_NOISE.sub(" ", text))
    parts = file.removesuffix(".rs").split("/")
    path = tuple(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)
    module = _Module(path, file, _USE.sub(" ", code), set(_MODULE.findall(code)))
    for public, tree in _USE.findall(code):
        for leaf, name in _leaves(tree):
            if name == "*":
                module.globs.append(leaf)
            else:
                module.names[name] = leaf
                if public and not re.search(rf"\b{re.escape(name)}\b", module.code):
                    module.re_exports.add(name)
    return module


def _without_tests(code: str) -> str:
    while match := _TESTS.search(code):
        end = match.end() if match[1] == ";" else _closing(code, match.end())
        code = code[: match.start()] + code[end:]
    return code


def _closing(code: str, begin: int) -> int:
    """The end of what an opened brace before ``begin`` encloses."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(code, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(code)


def _leaves(tree: str, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each path of a ``use``, with the name it gets; ``*`` for all of a module."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        inner = rest[: _closing(rest, 0) - 1]
        before = (*prefix, *_segments(head.rstrip().removesuffix("::")))
        for part in _split(inner):
            yield from _leaves(part, before)
        return
    path, _, alias = tree.partition(" as ")
    leaf = (*prefix, *_segments(path))
    if leaf and leaf[-1] == "self":
        leaf = leaf[:-1]
    if leaf and leaf[-1] == "*":
        yield leaf[:-1], "*"
    elif leaf:
        yield leaf, alias.strip() or leaf[-1]


def _segments(path: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in path.strip().split("::") if part.strip())


def _split(inner: str) -> Iterator[str]:
    """The parts between commas that no brace encloses."""
    depth, begin = 0, 0
    for index, char in enumerate(inner):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            yield inner[begin:index]
            begin = index + 1
    if inner[begin:].strip():
        yield inner[begin:]


def _used(module: _Module, modules: Mapping[tuple[str, ...], _Module]) -> set[str]:
    paths = [leaf for name, leaf in module.names.items() if name not in module.re_exports]
    paths += module.globs
    for item in _PATH.findall(module.code):
        path = tuple(item.split("::"))
        paths.append((*module.names[path[0]], *path[1:]) if path[0] in module.names else path)
    homes = (_home(path, module, modules) for path in paths)
    return {home.file for home in homes if home is not None}


def _home(
    path: tuple[str, ...],
    module: _Module,
    modules: Mapping[tuple[str, ...], _Module],
    seen: frozenset[tuple[tuple[str, ...], str]] = frozenset(),
) -> _Module | None:
    """The file in which what a path names is defined; ``None`` outside of the crate."""
    place = module.path
    rest = list(path)
    if rest[0] == "crate":
        place, rest = (), rest[1:]
    elif rest[0] in ("super", "self"):
        while rest and rest[0] in ("super", "self"):
            place = place[:-1] if rest.pop(0) == "super" else place
    elif rest[0] not in module.children:
        return None
    while rest and (*place, rest[0]) in modules:
        place = (*place, rest.pop(0))
    if place not in modules:
        return None
    here = modules[place]
    if not rest or (place, rest[0]) in seen or re.search(_DEFINED.format(re.escape(rest[0])), here.code):
        return here
    seen |= {(place, rest[0])}
    if rest[0] in here.names:
        return _home((*here.names[rest[0]], *rest[1:]), here, modules, seen)
    for glob in here.globs:
        origin = _home(glob, here, modules, seen)
        if origin is not None and re.search(_DEFINED.format(re.escape(rest[0])), origin.code):
            return origin
    return here
