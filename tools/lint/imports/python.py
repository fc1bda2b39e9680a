"""Which file of a Python package imports which, wherever in the file it does so."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping


def of_package(texts: Mapping[str, str], above: str = "") -> dict[str, set[str]]:
    """For each file the other files that it imports.

    ``texts`` has every file by its path; ``above`` is the folder that the package stands in. A name that a package's ``__init__.py``
    imports from elsewhere leads to the file it comes from.
    """
    files = {_module(path, above): path for path in texts}
    trees = {module: ast.parse(texts[path]) for module, path in files.items()}
    bound = {
        module: {name: (origin, item) for origin, item, name in _imports(module, tree, path.endswith("__init__.py"))}
        for (module, path), tree in zip(files.items(), trees.values(), strict=True)
    }
    imports: dict[str, set[str]] = {path: set() for path in texts}
    for module, path in files.items():
        only_exports = path.endswith("__init__.py") and not _does_more(trees[module])
        if not only_exports:
            targets = (_home(origin, item, files, bound) for origin, item in bound[module].values())
            imports[path] = {files[target] for target in targets if target is not None} - {path}
    return imports


def _module(path: str, above: str) -> str:
    inside = path.removeprefix(f"{above}/") if above else path
    return inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(module: str, tree: ast.Module, is_package: bool) -> Iterator[tuple[str, str | None, str]]:
    """Module, name in it (none where the module itself is imported) and a name of its own, for each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None, f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = module.split(".")
                base = parts[: len(parts) - node.level + is_package]
                origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield origin, alias.name, alias.asname or alias.name


def _home(
    origin: str,
    item: str | None,
    files: Mapping[str, str],
    bound: Mapping[str, Mapping[str, tuple[str, str | None]]],
) -> str | None:
    """The module that an import leads to; ``None`` outside of the package."""
    seen = set()
    while (origin, item) not in seen:
        seen.add((origin, item))
        if item is not None and f"{origin}.{item}" in files:
            return f"{origin}.{item}"
        if origin not in files:
            return None
        if item is None or not files[origin].endswith("__init__.py") or item not in bound[origin]:
            return origin
        origin, item = bound[origin][item]
    return origin if origin in files else None


def _does_more(tree: ast.Module) -> bool:
    """Whether a module does more than to import and to list what it exports."""
    names = ("__all__",)
    for node in tree.body:
        is_list = isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets)
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (isinstance(node, (ast.Import, ast.ImportFrom)) or is_list or is_text):
            return True
    return False
