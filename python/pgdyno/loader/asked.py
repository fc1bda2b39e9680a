"""What a load is asked to do: the options of ``pgdyno load``, and the keywords of ``pgdyno.load``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pgdyno.errors import InputError

FormatName = Literal["csv", "tsv", "text"]
"""``csv`` and ``text`` as COPY has them; ``tsv``: tabs between values, nothing quoted or escaped, ``\\N`` is NULL."""
IndexChoice = Literal["keep", "rebuild", "auto"]
Via = Literal["aws_s3"]

CHUNK_BYTES = 8 << 20
"""One COPY and one commit each. Large enough that the commit is small beside it (a fifth of a second of COPY at the 50 to
90 MB/s that one session does), small enough that little is done again after an interruption."""
CHUNK_BYTES_MAX = 64 << 20
"""Of a long plain file, which needs no memory for it. COPY writes its pages from a ring of 16 MiB (BULKWRITE in PostgreSQL's
``freelist.c``) once that is full, so that most of a chunk of 64 MiB is written while it is loaded, and not by the checkpoint."""
CHUNK_BYTES_LAST = 1 << 20
"""Of the end of such a file: on average half of the last chunk is loaded by one session while the others have nothing to do."""
CHUNK_BYTES_MIN = 1 << 10
MAX_REJECTS = 1000
"""Rows that are rejected before the load gives up: more are a wrong option, not bad rows."""
CONNECTIONS_LIMIT = 256
"""Sessions that the engine takes at most (its `order.rs`). Machines with more than 129 processors would reckon with more."""
_NUMBER_LIMIT = (1 << 63) - 1
"""Of bytes and rows: the columns of the ledger hold no more, and the engine refuses what is twice as much."""


@dataclass(frozen=True)
class Asked:
    """A load as it was asked for. What is None is found out, or the engine's choice."""

    sources: tuple[str, ...]
    """Files, patterns as ``part-*.csv.gz``, addresses as ``s3://bucket/part-*.csv.gz``, or ``-`` for standard input."""
    into: str
    """Connection string, without a password."""
    table: str | None = None
    """As in SQL: ``title``, ``imdb.title``. None: what the one file is called."""
    format: FormatName | None = None
    """None: by the file's name."""
    header: bool | None = None
    """Whether the first row of each file has names. None: when it has those of the table's columns."""
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    null: str | None = None
    encoding: str = "UTF8"
    """Of the files; one of PostgreSQL's names."""
    columns: tuple[str, ...] = ()
    """The table's columns in the order of the file's values."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """Name in the header -> column."""
    create: bool = False
    """Make the table from the files when there is none."""
    truncate: bool = False
    """Empty the table first."""
    upsert: tuple[str, ...] = ()
    """Columns that are the key: rows of the files take the place of those that have the same. None: rows are added."""
    via: Via | None = None
    """``aws_s3``: the server reads the objects itself. None: what is loaded is read here."""
    s3_region: str | None = None
    """Of ``via``: where the objects are. None: ``AWS_REGION``, else ``AWS_DEFAULT_REGION``."""
    reject: Path | None = None
    """File for rows that the server refuses. None: the first one ends the load."""
    max_rejects: int = MAX_REJECTS
    connections: int | None = None
    """Sessions to begin with. None: one fewer than this machine's processors, and two at least."""
    connections_max: int | None = None
    """Sessions to end with, when each further one helps. None: ``connections`` if given, else twice the default."""
    chunk_bytes: int = CHUNK_BYTES
    rate_bytes_per_s: int | None = None
    """Of uncompressed input."""
    indexes: IndexChoice = "auto"
    autovacuum_off: bool = True
    """Keep autovacuum from the table while it is loaded."""
    vacuum: bool = True
    """VACUUM and ANALYZE the table at the end."""
    checkpoint: bool = True
    """A CHECKPOINT at the end, where the role may. Whoever loads several tables makes one for all."""
    durable_chunks: bool = False
    """Each chunk waits for its commit to be on disk. Without it the last commit alone waits, and brings all before it."""
    ledger: bool = True
    """Write down in the database what is loaded. Without it an interrupted load cannot go on."""
    again: bool = False
    """Load what was loaded already once more."""
    abandon: bool = False
    """Forget an interrupted load of this table; its rows stay."""
    s3_endpoint: str | None = None
    """Of a store that speaks as S3 does. None: ``AWS_ENDPOINT_URL``, else Amazon's."""
    s3_anonymous: bool = False
    """Read public buckets without credentials."""

    @property
    def chunk_bytes_max(self) -> int:
        """Of chunks of long plain files: longer where nobody has said how long they are to be."""
        return CHUNK_BYTES_MAX if self.chunk_bytes == CHUNK_BYTES else self.chunk_bytes

    @property
    def chunk_bytes_last(self) -> int:
        """Of chunks at the end of plain files: shorter where nobody has said how long they are to be."""
        return CHUNK_BYTES_LAST if self.chunk_bytes == CHUNK_BYTES else self.chunk_bytes

    def __post_init__(self) -> None:
        """Refuses what makes no sense, whatever the server."""
        if not self.sources:
            raise InputError("no file is named", remedy="name one, or `-` for standard input")
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
                "--columns says what each value is, and --rename what a header means", remedy="leave one of them away"
            )
        if not self.ledger and (self.again or self.abandon):
            raise InputError(
                "without a ledger nothing is known of earlier loads", remedy="leave --again and --abandon away"
            )
        if self.s3_region is not None and self.via is None:
            raise InputError(
                "--s3-region is for --via aws_s3",
                remedy="add that, or say the region of what is read here by AWS_REGION",
            )
        if self.upsert and not self.ledger:
            raise InputError(
                "--upsert stages rows, and the ledger says which those are", remedy="leave --no-ledger away"
            )
