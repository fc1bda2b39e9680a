"""Kind `script`: files of the user's in pgbench's language. What they do is not known, so nothing of it is proven."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import WithJsonSchema

from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.pgbench import OnPgbenchTables
from pgdyno.workload.scripts import ScriptFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SLEEP = re.compile(r"^\s*\\sleep\b", re.MULTILINE | re.IGNORECASE)


class Script(OnPgbenchTables):
    """`script`: your files in pgbench's language."""

    blamed: ClassVar[str] = "files"

    kind: Literal["script"] = "script"
    """Your script files."""
    files: Annotated[
        tuple[ScriptFile, ...], WithJsonSchema({"type": "array", "items": {"type": ["string", "object"]}})
    ] = ()
    """Files in pgbench's language, `FILE.sql@WEIGHT`, beside the experiment file."""

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """The files."""
        return tuple((file.name, file.weight) for file in self.files)

    @property
    def writes(self) -> bool:
        """That is not known."""
        return True

    @property
    def sleeps(self) -> bool:
        """Whether a script waits by itself."""
        return any(_SLEEP.search(file.text) for file in self.files)

    def native(self) -> dict[str, Any]:
        """See :meth:`Clients.native`."""
        scripts = [{"name": file.name, "text": file.text, "weight": file.weight} for file in self.files]
        return {"pgbench": {"scripts": scripts, "scale": self.scale}}

    def pgbench_words(self, folder: Path) -> list[str]:
        """From the record and not from where it lay, so that a file that has changed meanwhile changes nothing."""
        words = []
        for number, file in enumerate(self.files):
            path = folder / f"{number}.sql"
            path.write_text(file.text, encoding="utf-8")
            words += ["-f", f"{path}@{file.weight}"]
        return [*words, "-s", str(self.scale)]

    def refusals_in_time(self, dilation: int) -> Iterator[Refusal]:
        """Pgbench has its own time."""
        if dilation > 1 and self.driver == "pgbench" and self.sleeps:
            why = "pgbench does not slow the \\sleep of a script, as a dilated world needs it"
            yield Refusal("files", why, 'use engine = "native", which does')
        yield from super().refusals_in_time(dilation)

    def _own_record(self) -> dict[str, Any]:
        return super()._own_record() | {"script": ",".join(f"{name}@{weight}" for name, weight in self.mix)}

    def _of_kind(self) -> Iterator[Refusal]:
        names = [file.name for file in self.files]
        if not names:
            yield Refusal("files", 'kind = "script" needs files = ["FILE.sql"]')
        if len(set(names)) < len(names):
            yield Refusal("files", f"{max(names, key=names.count)} appears twice; give it one weight")
        yield from super()._of_kind()
