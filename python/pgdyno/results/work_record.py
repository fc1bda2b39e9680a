"""The record of work that ends by itself, as a part of its run's record: loads, streams of queries, replays, and power cuts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]


class Record(BaseModel):
    """A record is written once and never changed, and a misspelt field is an error rather than lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class BulkLoadedTable(Record):
    """One table of a load that was measured."""

    table: str
    files: Count
    stored_bytes: Count
    """Bytes of its files on disk."""
    bytes: Count
    """Uncompressed bytes of its files: the input of COPY."""
    rows: Count
    chunks: Count
    """Each one COPY and one commit."""
    connections: Count
    """Sessions that copied, at the end."""
    begin_ns: int
    end_ns: int
    """When its last commit was durable; the checkpoint is not in it."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By step, in their order: ``transfer``, ``put_back`` (indexes that were built again among it), ``vacuum``, ``checkpoint`` (waiting
    for the last commit)."""
    limits: dict[str, float] = Field(default_factory=dict)
    """Limit that the loader reported while it copied -> share of the seconds, 0 to 1."""
    indexes: str = ""
    """Its decision about indexes, and the reason."""


class BulkLoadRecord(Record):
    """A load that was the workload of a run: `kind = "load"`."""

    parallel: bool
    """Whether all tables were loaded in parallel."""
    tables: tuple[BulkLoadedTable, ...]
    checkpoint_s: Annotated[float, Field(ge=0)] | None = None
    """The CHECKPOINT at the end, which is in the measured phase; None if the role was not allowed to."""


class RefreshRecord(Record):
    """A refresh function that ran beside or around streams of queries."""

    function: Literal["insert", "delete"]
    """The first adds orders with their lines, the second deletes as many."""
    refresh_set: Count
    """Which of dbgen's sets, from 1."""
    begin_ns: int
    end_ns: int
    orders: Count
    lines: Count | None
    """None where the driver does not tell; ``transactions`` too."""
    transactions: Count | None
    error: str = ""
    """Why it ended before its work; empty if it did not."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.begin_ns) / 1e9


class StreamsRecord(Record):
    """Streams of queries that were the workload of a run: `kind = "tpch"`. Each query is a row of ``workload/query``."""

    geometric_mean_s: Annotated[float, Field(gt=0)]
    """Geometric mean of the seconds of all queries that brought their rows."""
    query_s: dict[str, float]
    """Number of a query -> geometric mean of its seconds, over streams and sets."""
    stream_s: dict[str, float]
    """Number of a stream -> seconds from the begin of its first query to the end of its last."""
    temp_bytes: dict[str, Count] = Field(default_factory=dict)
    """Number of a query -> bytes of the temporary files that it wrote, all of its executions together. Empty where not counted."""
    temp_unseen: str = ""
    """Why temporary files were not counted; empty if they were."""
    refresh: tuple[RefreshRecord, ...] = ()
    """The refresh functions, in the order in which they ended; none of the figures above has them."""


class TimeDistribution(Record):
    """A distribution of times, in the subject's milliseconds."""

    count: Count
    mean_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float


class ReplayedStatement(Record):
    """Statements of one shape in a replay."""

    statement: str
    """Its text with `?` in place of each literal, without comments."""
    calls: Count
    response_ms: float
    """Mean time from when it was due until its answer."""
    timed: Count
    """Those that were done here and whose duration production recorded; the two times below are theirs."""
    service_ms: float | None = None
    """Mean time from when it was sent."""
    recorded_ms: float | None = None
    """Mean duration in production."""


class ReplayedError(Record):
    """An error that production did not have."""

    statement: str
    sqlstate: str
    """`connection` where the session was lost."""
    count: Count


class SequenceFit(Record):
    """How the keys of a column follow the last value that its sequence has in the database before a replay."""

    column: str
    """Table and column."""
    missing: Count
    """Values between that one and the first key of the capture which no statement of the capture took: rows that the database lacks."""
    given: Count
    """Values from the first key of the capture to the last."""
    returned: Count = 0
    """Statements whose answer has a key of it."""
    already: Count = 0
    """Of these, those behind which nothing is new but a value that the database's sequence has given already."""


class StatementWork(Record):
    """What pg_stat_statements counted of a statement."""

    calls: Count
    rows: Count
    exec_ms: Annotated[float, Field(ge=0)]
    wal_records: Count
    wal_images: Count
    """Whole pages in the WAL, which follow from checkpoints."""
    wal_bytes: Count
    blocks: Count
    """Blocks of tables and indexes, of shared_buffers or not."""


class ComparedStatement(Record):
    """A statement here and in production. A parameter, a constant and a list of them are one `?`."""

    statement: str
    production: StatementWork
    here: StatementWork


class LikenessRecord(Record):
    """What the statements of a replay did beside what they did in production, by pg_stat_statements of both."""

    whole: bool
    """Whether all of the capture was sent, so that the numbers of calls can be compared too."""
    statements: tuple[ComparedStatement, ...] = ()
    """Those of production, without those that were left out; of very many the others together are the last."""


class DoubtfulPlace(Record):
    """A place of a statement whose values may be keys, and were sent as captured."""

    statement: str
    """Without its literals."""
    place: str
    """`$2`, or `literal 3`."""
    why: str
    count: Count
    """Values there that may be keys."""


class ReplayedKeys(Record):
    """Keys that the server gives: this run's were sent in the places of the captured ones."""

    learned: Count
    """Keys of which the capture says which statement made them."""
    answered: Count = 0
    """Those whose statement was answered here with a key."""
    exchanged: Count
    """How often a key of this run stood in a statement in the place of the captured one."""
    doubtful: Count = 0
    """How often what may be a key was sent as captured."""
    doubtful_places: tuple[DoubtfulPlace, ...] = ()
    """Where, the most frequent places of them."""
    ties: Count
    """New values that several statements could have made; they were sent as captured."""
    not_known: Count
    """Uses of a learned key that this run had not made: sent as captured."""
    several_rows: Count
    """Answers with several rows, whose keys cannot be told apart."""
    waited: Count
    """Statements that waited for the transaction of another session which makes their key."""
    waited_s: Annotated[float, Field(ge=0)]
    """All of them together."""
    given_up: Count
    """Those that waited as long as is allowed, and were sent then."""
    sequences: tuple[SequenceFit, ...] = ()
    """Columns of which keys were learned."""


class ReadingRecord(Record):
    """What is not in a capture although its log, or its clients, had it. Reasons are the names of counters of `capture read`."""

    kept: Count
    """Statements that are in the capture."""
    statements: dict[str, Count] = Field(default_factory=dict)
    """Reason -> statements that are not, and records that may have had one."""
    lines: dict[str, Count] = Field(default_factory=dict)
    """Reason -> lines of which it is not known what they had, and those of other programs."""
    sessions: Count = 0
    """All sessions of the capture."""
    incomplete: dict[str, Count] = Field(default_factory=dict)
    """Reason -> sessions that were not recorded to their end."""
    unfinished: bool = False
    """The recording was killed: what came in its last seconds is missing."""
    accepted: bool = False
    """Whether the run was asked for with these losses (`accept_losses`)."""


class ReplayRecord(Record):
    """A capture that was replayed: `kind = "replay"`. No value of the capture is in it."""

    statements: Count
    """All that were asked for; each is one of the six counts that follow."""
    executed: Count
    failed_as_recorded: Count
    """With the SQLSTATE that they had in production."""
    newly_failed: Count
    no_longer_failed: Count
    """Failed in production and not here."""
    left_out: dict[str, Count]
    """Reason -> statements that were not sent for it."""
    left_out_statements: dict[str, Count] = Field(default_factory=dict)
    """The same by statement, the most frequent of them."""
    copies_made: Count = 0
    """COPYs among the statements that were sent whose rows were made by the statistics of their columns."""
    not_begun: Count
    """Due when the replay was ended."""
    not_asked: Count
    """Statements of the capture outside the part that was asked for: of other users, databases, times."""
    recorded_s: Annotated[float, Field(ge=0)]
    """What production recorded of the statements, added up."""
    left_out_s: Annotated[float, Field(ge=0)]
    """The same of those that were left out."""
    log_entries: Count = 0
    """Entries of the log that the capture was read from."""
    log_lost: Count = 0
    """Lines of it that are missing by their numbers, not whole, or no text: their statements are not in the capture."""
    reading: ReadingRecord | None = None
    """What the capture itself lacks."""
    captured_s: Annotated[float, Field(ge=0)]
    """How long production took for this part of the capture."""
    due_s: Annotated[float, Field(ge=0)]
    """How long it takes at the speed that was asked for, if nothing is late."""
    took_s: Annotated[float, Field(ge=0)]
    sessions: Count
    lanes: Count
    """Places for sessions: the most that can be open at a time."""
    connections_lost: Count
    ended_by: str = ""
    """Why it ended before its end; empty if it did not."""
    response: TimeDistribution
    """From when a statement was due until its answer."""
    service: TimeDistribution
    """From when it was sent, of statements that were done and whose duration production recorded."""
    recorded: TimeDistribution
    """Their durations in production."""
    behind: TimeDistribution
    """How late statements were sent, for any reason."""
    keys: ReplayedKeys | None = None
    """None where keys were sent as captured."""
    likeness: LikenessRecord | None = None
    """None where production's counters were not given."""
    errors: tuple[ReplayedError, ...] = ()
    by_statement: tuple[ReplayedStatement, ...] = ()
    """Those that took the most time here or in production; the others together are the last."""


class SampleRecord(Record):
    """What the transactions of a sample were drawn from: `kind = "sample"`. No value of the capture is in it."""

    transactions: Count
    """All of the part of the capture that was asked for."""
    left_out: Count
    """Those that cannot be sent, or not again; none of them was drawn."""
    reading: ReadingRecord
    """What the capture itself lacks."""


class FailedCut(Record):
    """A power cut that a database did not survive."""

    id: str
    """Its name for `pgdyno crashtest --replay`; its recording is kept."""
    stratum: str
    """What the server did at its instant."""
    failures: dict[str, str]
    """Check that found something -> what it said."""


class PowerCutsRecord(Record):
    """Power cuts after a run, in one reading: a server like the run's was recorded on volumes of its own."""

    reading: str
    """What was left of a write that was not durable."""
    cache: Literal["none", "volatile"]
    cuts: Count
    """Contents that were examined; each is another one."""
    failed: Count
    by_check: dict[str, Count] = Field(default_factory=dict)
    """Check -> cuts in which it found something."""
    first_failed: tuple[FailedCut, ...] = ()
    """The first of those that failed."""
    strata: dict[str, Count]
    """What the server did at the instants -> cuts."""
    audit: dict[str, Count] = Field(default_factory=dict)
    """How the pages of 8 KiB that the server wrote reached the device -> pages; the same in each reading of a recording."""
