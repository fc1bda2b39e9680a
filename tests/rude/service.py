"""Findings S-A1 to S-E13: load, size, drive and run on a server that exists."""

from __future__ import annotations

from tests.rude.row import Row

LOAD = 'pgdyno load x.csv --into "$D" --table'
X = "seq 1 1000 >x.csv; sql 'CREATE TABLE x (v bigint)'"
ROWS_OF_X = "sql 'SELECT count(*) FROM x'"

SECURITY = (
    Row(
        "S-A1",
        "no SQL that another role planted in the ledger is run",
        """sql 'CREATE TABLE secret (v bigint); CREATE ROLE few LOGIN; GRANT CREATE ON DATABASE '"$DB"' TO few'
        sql 'CREATE TABLE own (v bigint)' "$D user=few" 2>/dev/null; seq 1 10 >v.csv
        pgdyno load v.csv --into "$D" --table secret >/dev/null; sql 'DROP SCHEMA pgdyno_load CASCADE'
        sql 'CREATE SCHEMA pgdyno_load' "$D user=few"
        sql "CREATE TABLE pgdyno_load.job (token text, v text); CREATE FUNCTION pgdyno_load.f() RETURNS trigger LANGUAGE plpgsql
             AS 'BEGIN ALTER ROLE few SUPERUSER; RETURN NEW; END'; CREATE TRIGGER t BEFORE INSERT ON pgdyno_load.job
             FOR EACH ROW EXECUTE FUNCTION pgdyno_load.f()" "$D user=few"
        sql "CREATE TABLE pgdyno_load.undo (token text, job text, target text, kind text, what text, stages jsonb, search_path text);
             INSERT INTO pgdyno_load.undo VALUES ('00112233aabbccdd', 1, 'public.secret', 'index', 'harmless',
             '[[\\"alter role few superuser\\"],[],[]]', 'public')" "$D user=few"
        pgdyno load v.csv --into "$D" --table secret; code=$?; pgdyno load --restore --into "$D" --table secret; exit $code""",
        codes=(2, 3),
        says=("pgdyno_load", "few", "remedy"),
        state="sql \"SELECT rolsuper FROM pg_roles WHERE rolname = 'few'\"; sql 'DROP OWNED BY few; DROP ROLE few'",
        then="False",
        needs="server",
    ),
)

DATA_LOSS = (
    Row(
        "S-B1",
        "a connection string that cannot work is refused before a table is emptied",
        f"""{X}; sql 'INSERT INTO x SELECT generate_series(1, 1000); CREATE INDEX ON x (v)'
        sql 'SELECT oid FROM pg_class WHERE relname = $$x_v_idx$$' >before
        pgdyno load x.csv --into "$D channel_binding=require" --table x --truncate --indexes rebuild""",
        codes=(1, 2, 3),
        says=("remedy",),
        state=f"{ROWS_OF_X}; sql 'SELECT oid FROM pg_class WHERE relname = $$x_v_idx$$' | cmp - before && echo same",
        then="1000\nsame",
        needs="server",
    ),
    Row(
        "S-B2",
        "TRUNCATE between an interrupted load and the same command is noticed",
        """seq 1 3000000 >x.csv; sql 'CREATE TABLE x (v bigint)'; pgdyno load x.csv --into "$D" --table x --connections 1 >/dev/null 2>&1 & job=$!
        for _ in $(seq 2000); do test "$(sql 'SELECT count(*) FROM (SELECT 1 FROM x LIMIT 1) t')" = 1 && break; kill -0 $job || exit 9; done
        kill -9 $(descendant_or_self $job); wait $job; wait_until_idle; sql 'TRUNCATE x'; pgdyno load x.csv --into "$D" --table x --connections 1; code=$?
        test $code != 0 || test "$(sql 'SELECT count(*) FROM x')" = 3000000 || exit 9; exit 2""",
        codes=(2,),
        needs="server",
    ),
)

RESULTS = (
    Row(
        "S-C1",
        "a header whose names look like values is a header",
        """printf 'country,2019,2020\\nDE,1,2\\nFR,3,4\\n' >gdp.csv; sql 'CREATE TABLE gdp (country text, "2019" numeric, "2020" numeric)'
        pgdyno load gdp.csv --into "$D" --table gdp; printf 'k,t\\na,b\\n' >kv.csv; sql 'CREATE TABLE kv (k text, t text)'
        pgdyno load kv.csv --into "$D" --table kv; pgdyno load gdp.csv --into "$D" --table made --create ||
        pgdyno load gdp.csv --into "$D" --table made --create --header""",
        state="sql 'SELECT count(*) FROM gdp'; sql 'SELECT count(*) FROM kv'; sql 'SELECT count(*) FROM made'",
        then="2\n1\n2",
        needs="server",
    ),
    Row(
        "S-C2",
        "PGTZ and PGDATESTYLE mean to a load what they mean to psql, or are refused",
        """printf '2020-07-01 12:00,03/04/2020\\n' >tz.csv; sql 'CREATE TABLE tz (at timestamptz, d date)'
        export PGTZ=Asia/Tokyo PGDATESTYLE="ISO, DMY"; pgdyno load tz.csv --into "$D" --table tz --no-header; code=$?
        unset PGTZ PGDATESTYLE; found=$(sql "SELECT at AT TIME ZONE 'UTC', d FROM tz"); echo "$found"
        test $code = 2 || test "$found" = "2020-07-01 03:00:00|2020-04-03" """,
        needs="server",
    ),
    Row(
        "S-C3",
        "the peak of iostat -y is not thrown away",
        "pgdyno size --iostat $FILES/peak-first.txt --type gp3 --size 100GiB",
        says=("400", "shows more than any later one and is kept"),
    ),
    Row(
        "S-C4",
        "a device that is named twice counts once",
        "pgdyno size --iostat $FILES/load.txt --device nvme1n1 --device nvme1n1 --type gp3",
        says=("measured  nvme1n1, ",),
        never=(r"nvme1n1 \+ nvme1n1",),
    ),
    Row(
        "S-C5",
        "periods that one metric lacks at the end are said",
        "pgdyno size --cloudwatch $FILES/uneven-end.json --type gp3",
        says=(r"70 of 120 periods are left out: VolumeReadOps",),
    ),
    Row(
        "S-C6",
        "exit code 2 means that nothing was changed: a bad last row, a damaged file, a drive that fails later",
        """sql 'CREATE TABLE n (v bigint); CREATE TABLE uq (v int UNIQUE)'; (seq 1 2000000; echo x) >n.csv
        pgdyno load n.csv --into "$D" --table n --no-ledger --no-header; first=$?
        sql 'TRUNCATE n'; seq 1 2000000 | gzip >n.csv.gz; printf 'xxxx' | dd of=n.csv.gz bs=1 seek=$(($(stat -c %s n.csv.gz) - 8)) conv=notrunc 2>/dev/null
        pgdyno load n.csv.gz --into "$D" --table n --no-ledger --no-header; second=$?
        printf '\\\\set v random(1, 40)\\nINSERT INTO uq VALUES (:v);\\n' >uq.sql; pgdyno drive uq.sql --dsn "$D" --duration 5s -c 1; third=$?
        echo "codes $first $second $third"; test "$first$second$third" = 111""",
        needs="server",
    ),
    Row(
        "S-C7",
        "a drive in which no transaction succeeded is invalid",
        """echo 'SELECT pg_terminate_backend(pg_backend_pid());' >kill.sql; pgdyno drive kill.sql --dsn "$D" --duration 2s -c 2""",
        codes=(4,),
        needs="server",
    ),
)

CRASHES = (
    Row(
        "S-D1",
        "a load works whatever DateStyle the database has, and NaN in a file is refused",
        f"""{X}; sql "ALTER DATABASE $DB SET datestyle = 'SQL, DMY'"; {LOAD} x || exit 9
        pgdyno size --cloudwatch $FILES/nan.json --type gp3""",
        codes=(2,),
        says=("is not a number",),
        state=ROWS_OF_X,
        then="1000",
        needs="server",
    ),
    Row(
        "S-D2",
        "an experiment on a server with TLS runs, or is refused before its first run with the remedy",
        """pgdyno run $REPOSITORY/experiments/real-server.toml --dsn "$D sslmode=require" --results results --only 1 \\
            --set workload.duration=3s --set workload.warmup=1s --set replicates=1; code=$?
        test $code = 0 -o $code = 4 && exit 0; exit $code""",
        codes=(0, 2),
        never=("load the tables first",),
        needs="tls",
    ),
    Row(
        "S-D3",
        "nothing of a load stays behind a pooler, and prepared statements are refused with what to do",
        f"""{X}; pgdyno load x.csv --into "$P" --table x; echo 'SELECT 1;' >s.sql; pgdyno drive s.sql --dsn "$P" --duration 1s -c 2 -M prepared
        sql "SELECT 'locks', count(*) FROM pg_locks WHERE locktype = 'advisory'\"""",
        says=(r"locks\|0", "remedy: .*(simple|direct)"),
        never=("look at the server's log",),
        needs="pooler",
    ),
    Row(
        "S-D4",
        "a statement that fails does not take the figures with it, and is named",
        """sql 'CREATE TABLE uq (v int UNIQUE)'; printf '\\\\set v random(1, 40)\\nINSERT INTO uq VALUES (:v);\\n' >uq.sql
        pgdyno drive uq.sql --dsn "$D" --duration 5s -c 1; code=$?
        printf '\\set v random(1, 1000000)\nINSERT INTO uq VALUES (:v);\n' >rarely.sql
        pgdyno drive rarely.sql --dsn "$D" --duration 2s -c 1 --continue-on-error >/dev/null || exit 9; exit $code""",
        codes=(1,),
        says=(r"uq\.sql", "23505", "TPS|tps|transactions"),
        needs="server",
    ),
)

CONFUSING = (
    Row(
        "S-E1",
        "a role without rights on the ledger of another is told what helps",
        f"""{X}; {LOAD} x >/dev/null; sql 'CREATE ROLE few LOGIN; GRANT INSERT, SELECT ON x TO few'
        pgdyno load x.csv --into "$D user=few" --table x""",
        codes=(1, 2, 3),
        says=("--no-ledger",),
        never=("look at the server's log",),
        state="sql 'DROP OWNED BY few; DROP ROLE few'",
        needs="server",
    ),
    Row(
        "S-E2",
        "a table that was dropped and made again takes its load with it",
        f"""sql 'CREATE TABLE x (v bigint)'; (seq 1 100; echo bad) >x.csv; {LOAD} x --no-header; sql 'DROP TABLE x; CREATE TABLE x (v text)'
        {LOAD} x --no-header""",
        never=("had another plan",),
        state=ROWS_OF_X,
        then="101",
        needs="server",
    ),
    Row(
        "S-E3",
        "a load of which no row came in ends itself",
        f"""sql 'CREATE TABLE x (v bigint)'; echo bad >x.csv; {LOAD} x --no-header; seq 1 10 >x.csv; {LOAD} x --no-header""",
        never=("--abandon", "what was committed stays"),
        state=ROWS_OF_X,
        then="10",
        needs="server",
    ),
    Row(
        "S-E4",
        "a table of one column with a delimiter in its name is questioned",
        """printf 'id;v\\n1;2\\n' >x.csv; pgdyno load x.csv --into "$D" --table made --create""",
        codes=(0, 2),
        says=("--delimiter ';'",),
        needs="server",
    ),
    Row(
        "S-E5",
        "a connection string of several hosts works, for load and for drive",
        f"""{X}; two="${{D/host=/host=/nowhere,}}"; pgdyno load x.csv --into "$two" --table x; first=$?
        echo 'SELECT 1;' >s.sql; pgdyno drive s.sql --dsn "$two" --duration 1s -c 1 >/dev/null; second=$?
        test $first = $second || exit 9; exit $first""",
        codes=(0, 2),
        never=("port is",),
        needs="server",
    ),
    Row(
        "S-E6",
        "an upsert into a table with a column of our name works, or is refused by that name",
        """printf 'id,pgdyno_row\\n1,2\\n' >x.csv; sql 'CREATE TABLE x (id int PRIMARY KEY, pgdyno_row int)'
        pgdyno load x.csv --into "$D" --table x --upsert id""",
        codes=(0, 2),
        never=("specified more than once", "look at the server's log"),
        needs="server",
    ),
    Row(
        "S-E7",
        "names with commas, spaces and capitals can be given",
        """printf '"I,d",v\\n1,2\\n' >x.csv; sql 'CREATE TABLE x ("I,d" int PRIMARY KEY, v int)'
        pgdyno load x.csv --into "$D" --table x --upsert '"I,d"' || exit 9; pgdyno load x.csv --into "$D" --table 'Mixed Case Ü'""",
        codes=(2,),
        says=('"Mixed Case Ü"',),
        needs="server",
    ),
    Row(
        "S-E8",
        "headers in other case and gzip with padding are read",
        """sql 'CREATE TABLE x (id int, v int)'; printf 'ID,V\\n1,2\\n' >a.csv; printf 'id,v\\n3,4\\n' >b.csv
        pgdyno load a.csv b.csv --into "$D" --table x || exit 9
        printf 'id,v\\n5,6\\n' | gzip >c.csv.gz; head -c 512 /dev/zero >>c.csv.gz; pgdyno load c.csv.gz --into "$D" --table x""",
        state=ROWS_OF_X,
        then="3",
        needs="server",
    ),
    Row(
        "S-E9",
        "Parquet's fixed binaries are read, and nanoseconds are not rounded in silence",
        """python3 - <<'END'
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"u": pa.array([b"0123456789abcdef"], pa.binary(16))}), "u.parquet")
pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), "ns.parquet")
END
        sql 'CREATE TABLE u (u bytea); CREATE TABLE ns (at timestamp)'
        pgdyno load u.parquet --into "$D" --table u || exit 9; pgdyno load ns.parquet --into "$D" --table ns; code=$?
        test $code = 2 && exit 0; exit $code""",
        says=("ns|nanosecond|round",),
        state="sql 'SELECT count(*) FROM u'",
        then="1",
        needs="server",
    ),
    Row(
        "S-E10",
        "a NUL in a file is named",
        """printf 'a\\0b\\n' >x.csv; sql 'CREATE TABLE x (v text)'; pgdyno load x.csv --into "$D" --table x --no-header""",
        codes=(1, 2),
        says=("NUL|0x00|zero byte", "remedy"),
        never=("LATIN1",),
        needs="server",
    ),
    Row(
        "S-E11",
        "an empty script is refused, and a timeout of the user's is named",
        """echo '-- nothing' >s.sql; pgdyno drive s.sql --dsn "$D" --duration 1s -c 1; first=$?
        seq 1 1000 >x.csv; sql 'CREATE TABLE x (v bigint PRIMARY KEY)'; python3 $REPOSITORY/tests/rude/hold_row.py "$D" x 1 & job=$!
        for _ in $(seq 400); do test "$(sql "SELECT count(*) FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation = 'x'::regclass")" = 1 && break; wait_a_moment; done
        pgdyno load x.csv --into "$D options='-c lock_timeout=200'" --table x --indexes keep; second=$?; kill $(descendant_or_self $job)
        echo "codes $first $second"; exit $first""",
        codes=(2,),
        says=("lock_timeout", r"codes 2 [123]"),
        never=("look at the server's log",),
        needs="server",
    ),
    Row(
        "S-E12",
        "sizes say that GiB is wanted, and a disk is proposed of several devices",
        """for size in 100GB 100G 100; do pgdyno size --iostat $FILES/load.txt --size $size; done
        pgdyno size --iostat $FILES/load.txt --size 0GiB; pgdyno size --iostat $FILES/two-devices.txt""",
        codes=(2,),
        says=("write 100GiB", "`0GiB` is less than a byte", "--device vda"),
        never=("--device loop0",),
    ),
    Row(
        "S-E13",
        "a system catalogue is refused by name",
        f"{X}; {LOAD} pg_class",
        codes=(2,),
        says=("pg_class", "remedy"),
        never=("33 columns",),
        needs="server",
    ),
)

ROWS = (*SECURITY, *DATA_LOSS, *RESULTS, *CRASHES, *CONFUSING)
