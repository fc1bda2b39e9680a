# What the scripts of the rude table may use; see row.py.
set -u
pgdyno() { "$PYTHON" -m pgdyno "$@"; }
python3() { "$PYTHON" "$@"; }
sql() { "$PYTHON" -m tests.rude.sql "${2:-$D}" "$1"; }
# In place of a condition that nothing announces: it is asked again and again, with an end in the loop around it.
wait_a_moment() { read -r -t 0.05 <> <(:) || true; }
wait_until_idle() {
    for _ in $(seq 400); do
        [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")" = 0 ] && break
        wait_a_moment
    done
}
# The first descendant of process $1 whose command line has the regular expression $2; its pid.
descendant() {
    local all=$1 level=$1
    while level=$(pgrep -d, -P "$level"); do all=$all,$level; done
    pgrep -P "$all" -f -- "$2" | head -1 | grep .
}
# Waits until pgdyno's own driver works for the job $1. A job that has none is ended, and the row with it.
wait_for_driver() {
    for _ in $(seq 1200); do
        descendant "$1" 'pgdyno-engine drive$' >/dev/null && return
        kill -0 "$1" 2>/dev/null || break
        wait_a_moment
    done
    kill "$(descendant_or_self "$1")" 2>/dev/null
    wait "$1"
    echo "no driver was at work before exit code $?" >&2
    exit 9
}
# The command that the shell's job $1 runs: a function runs in a shell of its own.
descendant_or_self() { pgrep -P "$1" -x python -o || pgrep -P "$1" -x python3 -o || echo "$1"; }
