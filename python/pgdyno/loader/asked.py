"""What a load is asked to do: the options of ``pgdyno load``, and the keywords of ``pgdyno.load``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from ..base.errors import InputError

FormatName = Literal["csv", "tsv", "text"]
"""``csv`` and ``text`` as COPY has them; ``tsv``: tabs between values, nothing quoted or escaped, ``\\N`` is NULL."""
IndexChoice = Literal["keep", "rebuild", "auto"]
Via = Literal["aws_s3"]
OnConflict = Literal["skip"]
"""``skip``: a row whose key is in the table already is left out."""

CHUNK_BYTES = 8 << 20
"""One COPY and one commit each. Large enough that the commit is small beside it (a fifth of a second of COPY at the 50 to
90 MB/s that one session does), small enough that little is done again after an interruption."""
CHUNK_BYTES_MAX = 64 << 20
"""Chunk of a long plain file, which needs no memory. COPY writes its pages from a ring of 16 MiB (BULKWRITE in PostgreSQL's
``freelist.c``) once that is full, so that most of a chunk of 64 MiB is written while it is loaded, and not by the checkpoint."""
CHUNK_BYTES_LAST = 1 << 20
"""Chunk at the end of such a file: on average half of the last chunk is loaded while the other sessions are idle."""
CHUNK_BYTES_MIN = 1 << 10
MAX_REJECTS = 1000
"""Rows that are rejected before the load gives up: more are a wrong option, not bad rows."""
CONNECTIONS_LIMIT = 256
"""Sessions that the engine takes at most (its `spec.rs`). Machines with more than 129 processors would use more."""
_NUMBER_LIMIT = (1 << 63) - 1
"""Largest number of bytes and rows: the columns of the ledger hold no more, and the engine refuses what is twice as much."""


@dataclass(frozen=True)
class ChunkBytes:
    """How long chunks are at least, in bytes of uncompressed input."""

    usual: int = CHUNK_BYTES
    most: int = CHUNK_BYTES_MAX
    """At the beginning of a long plain file."""
    last: int = CHUNK_BYTES_LAST
    """At the end of a plain file."""

    def document(self) -> dict[str, int]:
        """As the engine takes it."""
        return asdict(self)

    def plan(self) -> dict[str, int]:
        """As plans of version 1 keep it."""
        return {"chunk_bytes": self.usual, "chunk_bytes_max": self.most, "chunk_bytes_last": self.last}


@dataclass(frozen=True)
class LoadOptions:
    """A load as it was asked for. What is None is found out, or the engine's choice."""

    sources: tuple[str, ...]
    """Files, patterns as ``part-*.csv.gz``, addresses as ``s3://bucket/part-*.csv.gz``, or ``-`` for standard input."""
    into: str
    """Connection string, without a password."""
    table: str | None = None
    """As in SQL: ``title``, ``imdb.title``. None: named after the file."""
    format: FormatName | None = None
    """None: from the file's name."""
    header: bool | None = None
    """Whether the first row of each file is a header. None: if it has the names of the table's columns."""
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    null: str | None = None
    encoding: str = "UTF8"
    """Encoding of the files, by PostgreSQL's name."""
    columns: tuple[str, ...] = ()
    """The table's columns in the order of the file's values."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """Name in the header -> column."""
    create: bool = False
    """Create the table from the files if it does not exist."""
    truncate: bool = False
    """Empty the table first."""
    upsert: tuple[str, ...] = ()
    """Key columns: rows of the files replace existing rows with the same keys. None: rows are added."""
    on_conflict: OnConflict | None = None
    """What becomes of rows that a unique or exclusion constraint refuses. None: the first one ends the load."""
    via: Via | None = None
    """``aws_s3``: the server reads the objects itself. None: this machine reads the sources."""
    s3_region: str | None = None
    """Region of the objects, for ``via``. None: ``AWS_REGION``, else ``AWS_DEFAULT_REGION``."""
    reject: Path | None = None
    """File for rows that the server refuses. None: the first one ends the load."""
    max_rejects: int = MAX_REJECTS
    connections: int | None = None
    """Initial number of sessions. None: one fewer than the server's processors, but at least two."""
    connections_max: int | None = None
    """Maximum number of sessions, if each further one helps. None: ``connections`` if given, else twice the default."""
    server_processors: int | None = None
    """Those of the server, which are asked for when it is reached. None: as many as this machine has."""
    chunk_bytes: int = CHUNK_BYTES
    rate_bytes_per_s: int | None = None
    """Maximum rate of uncompressed input."""
    indexes: IndexChoice = "auto"
    autovacuum_off: bool = True
    """Turn autovacuum off for the table during the load."""
    vacuum: bool = True
    """VACUUM and ANALYZE the table at the end."""
    checkpoint: bool = True
    """A CHECKPOINT at the end, if the role may. Loading several tables makes one for all."""
    durable_chunks: bool = False
    """Each chunk's commit waits for the disk. Without it only the last commit waits, and flushes all earlier ones."""
    ledger: bool = True
    """Keep a ledger in the database. Without it an interrupted load cannot be resumed."""
    again: bool = False
    """Load files once more that are already loaded."""
    abandon: bool = False
    """Forget an interrupted load of this table; its rows stay."""
    s3_endpoint: str | None = None
    """Endpoint of an S3-compatible store. None: ``AWS_ENDPOINT_URL``, else Amazon's."""
    s3_anonymous: bool = False
    """Read public buckets without credentials."""

    @property
    def is_staged(self) -> bool:
        """Whether rows go into a table of their own first, and are merged into the target."""
        return bool(self.upsert) or self.on_conflict is not None

    @property
    def chunks(self) -> ChunkBytes:
        """How long chunks are: those of plain files vary unless a length was asked for."""
        if self.chunk_bytes == CHUNK_BYTES:
            return ChunkBytes()
        return ChunkBytes(self.chunk_bytes, self.chunk_bytes, self.chunk_bytes)

    def __post_init__(self) -> None:
        """Refuses what makes no sense, whatever the server."""
        if not self.sources:
            raise InputError("the files are missing", remedy="name a file, or `-` for standard input")
        for flag, number, least, most in (
            ("--connections", self.connections, 1, CONNECTIONS_LIMIT),
            ("--connections-max", self.connections_max, self.connections or 1, CONNECTIONS_LIMIT),
            ("--chunk", self.chunk_bytes, CHUNK_BYTES_MIN, _NUMBER_LIMIT),
            ("--rate", self.rate_bytes_per_s, 1, _NUMBER_LIMIT),
            ("--max-rejects", self.max_rejects, 0, _NUMBER_LIMIT),
        ):
            if number is not None and number < least:
                raise InputError(f"{flag}: {number} is less than {least}", remedy=f"give {least} or more")
            if number is not None and number > most:
                # The engine would refuse it too, but only after the table was emptied.
                raise InputError(f"{flag}: {number} is more than {most}", remedy=f"give {most} or less")
        if self.columns and self.rename:
            raise InputError(
                "--columns and --rename exclude each other: both say what the columns are", remedy="omit one of them"
            )
        if not self.ledger and (self.again or self.abandon):
            raise InputError(
                "without a ledger nothing is known about earlier loads", remedy="omit --again and --abandon"
            )
        if self.s3_region is not None and self.via is None:
            raise InputError(
                "--s3-region is for --via aws_s3",
                remedy="add that; for objects read by this machine set AWS_REGION",
            )
        if (self.upsert or self.on_conflict) and not self.ledger:
            flag = "--upsert" if self.upsert else "--on-conflict"
            raise InputError(f"{flag} needs the ledger, which says which rows are staged", remedy="omit --no-ledger")
        if self.upsert and self.on_conflict:
            raise InputError(
                "--upsert replaces rows that are there, and --on-conflict skip keeps them", remedy="omit one of them"
            )
        if self.on_conflict and self.via is not None:
            raise InputError("--on-conflict is not for --via", remedy="omit one of them")
