"""The kinds of workload: the only list of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ..base.errors import InputError
from ..workload.kind import Workload, at_key
from .idle import Idle
from .load.kind import LoadKind
from .pgbench import Pgbench
from .replay.kind import ReplayKind
from .sample import SampleKind
from .script import Script
from .sysbench import Sysbench
from .tpcc.kind import Tpcc
from .tpch.kind import Tpch

if TYPE_CHECKING:
    from pydantic import BaseModel


KINDS: dict[str, type[Workload]] = {}
"""Name -> kind."""
DEFAULT = "pgbench"
"""The kind of a table that does not say it."""
SEED_MAX = 2**63


def register(kind: type[Workload]) -> None:
    """Add a kind; its name is the default of its field ``kind``."""
    KINDS[kind.model_fields["kind"].default] = kind


for _kind in (Pgbench, Script, Sysbench, Tpcc, Tpch, ReplayKind, SampleKind, Idle, LoadKind):
    register(_kind)


def kind_of(table: Any) -> type[Workload] | None:
    """The kind of a table ``[workload]``; None of one that does not say a known kind."""
    name = table.get("kind", DEFAULT) if isinstance(table, dict) else None
    return KINDS.get(name) if isinstance(name, str) else None


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a table as a file writes them."""
    return [info.alias or name for name, info in model.model_fields.items()]


def of_kind(table: dict[str, Any], kind: Any, others: Iterable[Any]) -> dict[str, Any]:
    """The table as ``kind``, without keys that only kinds among ``others`` have."""
    document = {**table, "kind": kind}
    own, known = kind_of(document), [other for name in others if (other := kind_of({"kind": name})) is not None]
    if own is None:
        return document
    foreign = {key for other in known for key in keys_of(other)} - set(keys_of(own))
    return {key: value for key, value in document.items() if key not in foreign}


def read(table: Any) -> Workload:
    """The workload that a table is; what is wrong with it is raised as pydantic collects it."""
    if isinstance(table, Workload):
        return table
    if not isinstance(table, dict):
        raise PydanticCustomError("dict_type", "it should be a table")
    kind = kind_of(table)
    if kind is None:
        *most, last = (f"'{name}'" for name in KINDS)
        raise at_key("kind", f"it should be {', '.join(most)} or {last}, not {table['kind']!r}")
    for key in sorted(table.keys() - set(keys_of(kind))):
        kinds = [name for name, other in KINDS.items() if key in keys_of(other)]
        if kind.without and len(kinds) > len(KINDS) / 2:
            raise at_key(key, f"{kind.without}; omit the key")
        if kinds:
            text = " or ".join(f'"{name}"' for name in kinds)
            raise at_key(key, f'it is for kind = {text}, and this is kind = "{kind_name(kind)}"')
    return kind.model_validate(table)


def kind_name(kind: type[Workload]) -> str:
    """The name that a file gives it."""
    return str(kind.model_fields["kind"].default)


def workload_of(*, seed: int = 0, **table: Any) -> Workload:
    """The workload of a table that is complete. :class:`InputError` names the key of what is wrong."""
    if not 0 <= seed < SEED_MAX:
        raise InputError(f"workload: seed: it should be from 0 to {SEED_MAX - 1}", remedy="give another seed")
    try:
        workload = read(table)
    except PydanticCustomError as error:
        key = (error.context or {}).get("key", "")
        raise _refused(str(key), error.message()) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")) from error
    if (refusal := next(workload.refusals(), None)) is not None:
        raise _refused(refusal.key, refusal.message)
    return workload.seeded(seed)


def _refused(key: str, message: str) -> InputError:
    return InputError(f"workload: {key}: {message}", remedy="see `pgdyno compare --help`")


class _ByKind:
    """A union that is discriminated by ``kind``, over the registered kinds."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read by :func:`read`; the schema is that of the union."""
        kinds: Any = reduce(or_, KINDS.values())
        union = handler.generate_schema(Annotated[kinds, Field(discriminator="kind")])
        written = core_schema.plain_serializer_function_ser_schema(_written, info_arg=True)
        return core_schema.no_info_wrap_validator_function(lambda table, _: read(table), union, serialization=written)


def _written(workload: Workload, info: core_schema.SerializationInfo) -> dict[str, Any]:
    return workload.model_dump(mode=info.mode, by_alias=bool(info.by_alias))


AnyWorkload = Annotated[Workload, _ByKind]
"""A workload of any registered kind."""
