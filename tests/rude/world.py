"""Findings A1 to A29: volumes, compare, run, report, query, doctor."""

from __future__ import annotations

from tests.rude.row import Row

ATTACH = "pgdyno volume attach null:size=64MiB --no-mount --name rude >/dev/null"
GONE = "pgdyno volume list --json | grep -c rude"
SHORT = "-n 1 -s 1 -c 2 --memory 256MiB --warmup 1s --duration 3s"
RUN = "one=(results/*/); pgdyno report"

ROWS = (
    Row(
        "A1",
        "Ctrl-C while a file system is made leaves no mkfs, no loop device and no claim",
        """mkdir bin; printf '#!/bin/sh\\nexec sleep 7531\\n' >bin/mkfs.ext4; chmod +x bin/mkfs.ext4; export PATH=$PWD/bin:$PATH
        pgdyno volume attach gp3 --name rude --mount mnt & job=$!
        for _ in $(seq 400); do pgrep -f '^sleep 7531' >/dev/null && break; wait_a_moment; done
        kill -TERM $(descendant_or_self $job); wait $job""",
        codes=(130,),
        says=("interrupted",),
        never=("already exists",),
        state=f"{GONE}; pgrep -f '^sleep 7531' | wc -l; ls mnt 2>/dev/null | wc -l",
        then="0\n0\n0",
        needs="volumes",
    ),
    Row(
        "A2",
        "runs and query call a run valid when the report does",
        f"""pgdyno compare null gp3:size=1GiB {SHORT} --results results >/dev/null
        pgdyno report results/* --format csv | python3 -c 'import csv, sys; print(sorted(one["valid"] for one in csv.DictReader(sys.stdin)))' >a
        pgdyno query "SELECT CASE WHEN valid THEN 'yes' ELSE 'no' END AS valid FROM runs" --results results --csv |
            python3 -c 'import csv, sys; print(sorted(one["valid"] for one in csv.DictReader(sys.stdin)))' >b
        cat a b; cmp a b""",
        says=(r"\['(yes|no)', '(yes|no)'\]",),
        needs="volumes",
    ),
    Row(
        "A3",
        "a store that is full is seen: operations that failed are counted",
        """mkdir store; mount -t tmpfs -o size=300m rude store
        pgdyno volume attach null:size=1GiB --no-mount --name rude --store store
        image=$(pgdyno volume list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["volumes"][0]["block_device"])')
        dd if=/dev/urandom of=$image bs=1M count=500 oflag=direct conv=fsync 2>dd.txt
        pgdyno volume stats rude --json; pgdyno volume list; pgdyno volume detach rude; umount store""",
        says=(r'"failed_ops": [1-9]', "full"),
        needs="volumes",
    ),
    Row(
        "A4",
        "an array that is too large is refused with the limit",
        "timeout 60 $PGDYNO volume attach 128xgp3:size=64TiB --no-mount --name rude",
        codes=(2, 3),
        says=("remedy",),
        never=("alloc.rs", "stack backtrace", "daemon.log"),
        state=GONE,
        then="0",
        needs="volumes",
    ),
    Row("A5", "a full standard output is said", "pgdyno runs --json >/dev/full", codes=(3,), says=("No space left",)),
    Row(
        "A6",
        "a mount point that cannot be made is refused",
        "pgdyno volume attach gp3:size=5GiB --mount /proc/foo --name rude",
        codes=(2, 3),
        says=("/proc/foo", "remedy"),
        state=GONE,
        then="0",
        needs="volumes",
    ),
    Row(
        "A7",
        "CPUs, mount options and clients that cannot be are refused before data are loaded",
        """for asked in "--server-cpus 99" "--mount-options bogus" "-c 1000000"; do
            pgdyno compare gp3 io2bx:iops=8000 $asked --results results; test $? = 2 || exit 9; done; exit 2""",
        codes=(2,),
        says=("99", "bogus", "remedy"),
        never=("load", "load the tables first"),
        state="ls results 2>/dev/null | wc -l",
        then="0",
        needs="volumes",
    ),
    Row(
        "A8",
        "a duration of millennia is refused",
        "pgdyno compare gp3 null --duration 100000000h --results results",
        codes=(2,),
        says=("duration", "remedy"),
        needs="volumes",
    ),
    Row(
        "A9",
        "a PostgreSQL that was killed in a run is named, with its log",
        f"""pgdyno compare null gp3 {SHORT} --duration 60s --results results & job=$!
        wait_for_driver $job; kill -9 $(descendant $job 'bin/postgres -D'); wait $job""",
        codes=(1,),
        says=("killed by signal 9", "remedy"),
        needs="volumes",
    ),
    Row(
        "A10",
        "a volume's daemon that was killed in a run is named, with a remedy that can be followed",
        f"""pgdyno compare null gp3 {SHORT} --duration 60s --results results & job=$!
        wait_for_driver $job; kill -9 $(descendant $job 'pgdyno-engine volume serve'); wait $job""",
        codes=(1,),
        says=("daemon of the data volume died", "remedy"),
        never=("volume detach run",),
        needs="volumes",
    ),
    Row(
        "A11",
        "a mistake in an experiment file points to the page of its keys",
        "printf 'schema_version = 1\\nbogus = 1\\n' >x.toml; pgdyno run x.toml --dry-run",
        codes=(2,),
        says=("bogus", r"experiment-file\.md"),
    ),
    Row(
        "A12",
        "run --dry-run --json prints JSON",
        """printf 'schema_version = 1\\n[world]\\nvolume = "gp3"\\n' >x.toml; set -o pipefail
        pgdyno run x.toml --dry-run --json | python3 -m json.tool >/dev/null""",
    ),
    Row(
        "A13",
        "doctor says that mounting is not allowed here, and so does attach",
        """without="setpriv --inh-caps -sys_admin --bounding-set -sys_admin"
        $without $PGDYNO volume attach null:size=64MiB --mount mnt --name rude; test $? = 3 || exit 9
        $without $PGDYNO doctor""",
        codes=(3,),
        says=("CAP_SYS_ADMIN", "remedy"),
        never=("Everything needed is here", "No such file or directory"),
        needs="volumes",
    ),
    Row(
        "A14",
        "who is not root is told so by stats and metrics",
        f"""{ATTACH}; nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
        $nobody $PGDYNO volume stats rude; first=$?; $nobody $PGDYNO metrics nvme rude; second=$?
        pgdyno volume detach rude >/dev/null; test $first = $second || exit 9; exit $second""",
        codes=(3,),
        says=("sudo",),
        never=("doctor --clean",),
        needs="volumes",
    ),
    Row(
        "A15",
        "a second experiment at the same time is announced",
        f"""pgdyno compare null gp3 {SHORT} --duration 30s --results one >/dev/null 2>&1 & job=$!
        wait_for_driver $job; timeout -s INT 20 $PGDYNO compare null gp3 {SHORT} --results two; kill -TERM $(descendant_or_self $job); wait $job""",
        codes=(130,),
        says=(r"another experiment is running",),
        needs="volumes",
    ),
    Row(
        "A16",
        "a daemon that hangs keeps neither stats nor list waiting",
        f"""{ATTACH}; daemon=$(pgdyno volume list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["volumes"][0]["pid"])'); kill -STOP $daemon
        timeout 60 $PGDYNO volume stats rude; code=$?; kill -CONT $daemon; pgdyno volume detach rude >/dev/null; exit $code""",
        codes=(1, 3),
        says=("error:", "remedy"),
        needs="volumes",
    ),
    Row(
        "A17",
        "an image in a larger volume: its file system grows, or it is said",
        """image=$PGDYNO_IMAGE_DIR/rude-image; pgdyno volume attach null:size=128MiB --mount mnt --name rude >/dev/null
        pgdyno volume detach rude --save-image $image >/dev/null; mkdir -p mnt
        pgdyno volume attach null:size=1GiB --mount mnt --name rude --image $image; df --output=size -BM mnt | tail -1
        pgdyno volume detach rude >/dev/null; code=$?; rm -r $image; exit $code""",
        says=(r"larger|grown|resize|\b9\d\dM",),
        needs="volumes",
    ),
    Row(
        "A18",
        "a volume that is too small for XFS is refused with the number",
        "pgdyno volume attach null:size=1MiB --file-system xfs --mount mnt --name rude",
        codes=(2, 3),
        says=("XFS|xfs", r"\d+ ?MiB"),
        never=("Usage: mkfs", "install xfsprogs"),
        state=GONE,
        then="0",
        needs="volumes",
    ),
    Row(
        "A21",
        "a remedy can be followed",
        """pgdyno volume attach 4xgp3:chunk=0 --no-mount --name rude; pgdyno volume attach gp3 --no-mount --mount mnt --name rude
        pgdyno volume attach gp3 --no-mount --name -- -ra""",
        codes=(2,),
        never=("chunk=0KiB", "or that it is not to be"),
        needs="volumes",
    ),
    Row(
        "A22",
        "mistakes in an experiment file are said in our words",
        """for line in 'replicates = true' '[world]\\nvolume = []' '[workload]\\nclients = "4"' '[workload]\\nclients = 1e300'; do
            printf "schema_version = 1\\n$line\\n" >x.toml; pgdyno run x.toml --dry-run; test $? = 2 || exit 9; done; exit 2""",
        codes=(2,),
        says=("x.toml:2: replicates", "x.toml:3: world.volume", "x.toml:3: workload.clients"),
        never=("Tuple should", "after validation", "valid tuple", "valid integer range"),
    ),
    Row(
        "A23",
        "an empty mount point is refused",
        'pgdyno volume attach null:size=64MiB --mount "" --name rude',
        codes=(2,),
        says=("--mount",),
        state=GONE,
        then="0",
        needs="volumes",
    ),
    Row(
        "A24",
        "detach removes the directories that attach made",
        """pgdyno volume attach null:size=64MiB --mount rel/deep/new --name rude >/dev/null && pgdyno volume detach rude >/dev/null
        test ! -e rel""",
        needs="volumes",
    ),
    Row(
        "A25",
        "an experiment's title stands in its report, and no interval is of eleven digits",
        f"""printf 'schema_version = 1\\ntitle = "A rude title"\\nreplicates = 1\\n[world]\\nvolume = "null"\\n[workload]\\nscale = 1\\nclients = 2\\nwarmup = "1s"\\nduration = "3s"\\n[instance]\\nmemory = "256MiB"\\n' >x.toml
        pgdyno run x.toml --results results >/dev/null; {RUN} "${{one[0]}}" >/dev/null; grep -o '<title>[^<]*' "${{one[0]}}/report.html"
        pgdyno report "${{one[0]}}" --format md""",
        says=("<title>.*A rude title", "A rude title"),
        never=(r"\d,\d{3},\d{3}\)",),
        needs="volumes",
    ),
    Row(
        "A26",
        "an arm that is invalid has no limit that binds, and no remedy",
        f"""pgdyno compare null gp3 {SHORT} --results results >out 2>err; cat out err
        python3 - out <<'END'
import sys
text = open(sys.argv[1]).read()
rows = {{line.split()[0]: line.split()[-1] for line in text.splitlines() if line.split()[-1:] in (["yes"], ["no"], ["NO"])}}
if not rows:
    sys.exit("no table was printed")
bad = [arm for arm, valid in rows.items() if valid.lower() == "no" and f"bound by: {{arm}}:" in text]
sys.exit(len(bad))
END""",
        needs="volumes",
    ),
    Row(
        "A27",
        "a query reads the results and no other file",
        """mkdir -p results; cp -r "$EXPERIMENT" results/; pgdyno query "SELECT * FROM read_csv('/etc/passwd')" --results results""",
        codes=(2,),
        never=("root:",),
    ),
    Row(
        "A28",
        "a list is JSON while volumes come and go",
        f"""( for _ in $(seq 8); do {ATTACH}; pgdyno volume detach rude >/dev/null; done ) & job=$!
        while kill -0 $job 2>/dev/null; do pgdyno volume list --json | python3 -m json.tool >/dev/null || exit 9; done; wait $job""",
        needs="volumes",
    ),
    Row(
        "A19",
        "a command to paste has its paths quoted",
        """mkdir "a b"; cp -r "$EXPERIMENT" results; pgdyno report "$(find results -name run.json | head -1 | xargs -d '\\n' dirname)" """,
        codes=(2,),
        says=("remedy: pgdyno report",),
    ),
)
