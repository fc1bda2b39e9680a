"""A typed model as tables: one for each part, with key, type, default and meaning."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel

from pgdyno.experiment.origin import tables_of
from tools.reference import markdown as md


def sections(model: type[BaseModel], title: str, titles: Mapping[str, str] | None = None) -> list[str]:
    """The model and every model that it uses, each as a heading, its docstring and a table of its fields.

    ``titles`` renames the headings of models that readers know by another name. What several models descend from has a
    section of its own, before theirs, if it has a title there.
    """
    schema = json.dumps(model.model_json_schema())
    models = _models(model, {})
    for name, other in (titles or {}).items():
        schema = schema.replace(f'"#/$defs/{name}"', f'"#/$defs/{other}"').replace(f'"{name}": ', f'"{other}": ')
    models = {(titles or {}).get(name, name): used for name, used in models.items()}
    whole = json.loads(schema)
    parts = whole.pop("$defs", {})
    sections = [_section(title, whole, model)]
    shown: set[type[BaseModel]] = set()
    for name, used in models.items():
        if "properties" in parts.get(name, {}):
            above = [base for base in reversed(used.__mro__[1:]) if base.__name__ in (titles or {})]
            sections += [
                _section((titles or {})[base.__name__], _own(parts[name], base, above=used), base)
                for base in above
                if base not in shown
            ]
            shown |= set(above)
            sections.append(_section(name, _own(parts[name], used) if above else parts[name], used))
    return sections


def _own(schema: dict[str, Any], model: type[BaseModel], above: type[BaseModel] | None = None) -> dict[str, Any]:
    """The keys of a schema that ``model`` adds to its bases, without those that ``above`` defines again."""
    names = inspect.get_annotations(model).keys() - (inspect.get_annotations(above).keys() if above else set())
    own = {info.alias or name for name, info in model.model_fields.items() if name in names}
    kept = {key: field for key, field in schema["properties"].items() if key in own}
    return {**schema, "properties": kept, "description": inspect.getdoc(model) or ""}


def _models(model: type, result: dict[str, type]) -> dict[str, type]:
    """Every model and dataclass that one uses, by its name, in the order of the fields."""
    if model.__name__ not in result:
        result[model.__name__] = model
        fields = (
            [model_field.annotation for model_field in model.model_fields.values()]
            if issubclass(model, BaseModel)
            else []
        )
        for annotation in fields or get_type_hints(model).values():
            for used in _classes(annotation):
                _models(used, result)
    return result


def _classes(annotation: Any) -> list[type]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [*tables_of(annotation)]
    if inspect.isclass(annotation) and is_dataclass(annotation):
        return [annotation]
    return [used for inner in getattr(annotation, "__args__", ()) for used in _classes(inner)]


def _section(title: str, schema: dict[str, Any], model: type) -> str:
    meanings = attribute_docstrings(model)
    required = set(schema.get("required", ()))
    rows = []
    for key, field in schema.get("properties", {}).items():
        default = "" if key in required else _default(field)
        meaning = field.get("description") or meanings.get(key, "")
        rows.append([md.code(key), type_of(field), default, md.literals(meaning)])
    about = md.literals(inspect.cleandoc(schema.get("description", "")))
    head = f"## {title}\n\n{about}".rstrip()
    return f"{head}\n\n{md.table(['key', 'type', 'default', 'meaning'], rows)}"


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return "empty"  # made by a function: an empty list or table
    if field["default"] is None:
        return "none"
    return md.code(json.dumps(field["default"], ensure_ascii=False))


def type_of(field: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}]({md.anchor(name)})"
    if "allOf" in field:
        return type_of(field["allOf"][0])
    choices = field.get("anyOf") or field.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(type_of(choice) for choice in choices))
    if "const" in field:
        return md.code(json.dumps(field["const"]))
    if "enum" in field:
        return " or ".join(md.code(json.dumps(value)) for value in field["enum"])
    return _plain(field)


def _plain(field: dict[str, Any]) -> str:
    kind = field.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        if "prefixItems" in field:
            return "[" + ", ".join(type_of(item) for item in field["prefixItems"]) + "]"
        return f"list of {type_of(field.get('items', {}))}"
    if kind == "object":
        inner = field.get("additionalProperties")
        return f"table of {type_of(inner)}" if isinstance(inner, dict) and inner else "table"
    return f"{kind}{_bounds(field)}"


def _bounds(field: dict[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return "".join(f" {sign} {field[name]:,}" for name, sign in signs.items() if name in field)


def attribute_docstrings(model: type) -> dict[str, str]:
    """The text below each field in the source of a model and of those that it descends from."""
    attribute_docstrings: dict[str, str] = {}
    for item in reversed(model.__mro__):
        if item.__module__.startswith("pgdyno."):
            attribute_docstrings |= _own_docstrings(item)
    return attribute_docstrings


def _own_docstrings(model: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    own_docstrings = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                own_docstrings[field.target.id] = inspect.cleandoc(value.value)
    return own_docstrings
