"""Stands in for HammerDB's command line: takes its scripts, sends its five calls to a server, and prints its lines (4.12 to 6.0).

It is run as a program by :func:`installed`. It writes down what it was asked, and a word in ``HAMMERDB_STANDIN_FAULT`` lets it err.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

MINUTE = "HAMMERDB_STANDIN_MINUTE_S"
FAULT = "HAMMERDB_STANDIN_FAULT"
ASKED = "asked.json"
PROGRAM = "hammerdbcli"
PAUSE_S = 0.006
"""Between two calls of a user: enough of them come together, and the machine has time for other tests."""
_SET = re.compile(r"diset (\w+) (\w+) (?:\{(.*)\}|(\S+))")
_CALLS = {
    "NEWORD": "SELECT neword(%s, %s, %s, %s, %s, 0)",
    "PAYMENT": "SELECT payment(%s, %s, %s, %s, %s, %s, %s, '$8', '0', 0)",
    "DELIVERY": "SELECT delivery(%s, %s)",
    "SLEV": "SELECT slev(%s, %s, %s)",
    "OSTAT": """SELECT * FROM ostat(%s, %s, %s, %s, '$5') AS (item int, supply int, quantity smallint, amount numeric, at timestamptz,
        customer int, last varchar, first varchar, middle varchar, balance numeric, number int, entered timestamp, carrier int)""",
}
_ERRORS = {
    "NEWORD": "New Order",
    "PAYMENT": "Payment",
    "DELIVERY": "Delivery",
    "SLEV": "Stock Level",
    "OSTAT": "Order Status",
}
_COUNTER = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"
_ORDERS = "SELECT sum(d_next_o_id) FROM district"
_said = threading.Lock()


def installed(home: Path) -> Path:
    """Put it where a release would be."""
    home.mkdir(exist_ok=True)
    program = home / PROGRAM
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return home


def say(text: str) -> None:
    with _said:
        print(text, flush=True)


def value(connection: psycopg.Connection, text: str) -> int:
    """The one number that a query brings."""
    row = connection.execute(text.encode()).fetchone()
    assert row is not None
    return int(row[0])


class Program:
    """What a script makes of it."""

    def __init__(self, path: Path) -> None:
        self.fault = os.environ.get(FAULT, "")
        self.minute_s = float(os.environ.get(MINUTE, "60"))
        self.settings: dict[str, str] = {}
        self.users, self.stop = 1, threading.Event()
        self.calls: dict[int, dict[str, list[float]]] = {}
        self.ended = threading.Event()
        document = {
            "argv": sys.argv,
            "mode": f"{path.stat().st_mode & 0o777:o}",
            "folder_mode": f"{path.parent.stat().st_mode & 0o777:o}",
            "folder": str(path.parent),
            "environment": sorted(name for name in os.environ if name.startswith("PG")),
            "temporary": os.environ["TMP"],
        }
        say("HammerDB CLI v6.0")
        for line in path.read_text().splitlines():
            if line == "file delete [info script]":
                path.unlink()
            elif match := _SET.fullmatch(line):
                value = match[4] if match[3] is None else match[3]
                self.settings[match[2]] = value
                say(f"Changed {match[1]}:{match[2]} from something to {value} for PostgreSQL")
            elif match := re.fullmatch(r"vuset vu (\d+)", line):
                self.users = int(match[1])
            elif line == "vurun":
                (Path.cwd() / ASKED).write_text(json.dumps(document | {"settings": self.settings, "users": self.users}))
                self.run()

    def connect(self) -> psycopg.Connection:
        named = {key: self.settings[f"pg_{key}"] for key in ("host", "port", "sslmode", "user")}
        password = {"password": self.settings["pg_pass"]} if self.settings["pg_pass"] else {}
        dsn = make_conninfo(dbname=self.settings["pg_dbase"], **named, **password)
        return psycopg.connect(dsn, autocommit=True, prepare_threshold=0)

    def run(self) -> None:
        if self.fault == "no server":
            say("Error in Virtual User 1: connection to server failed")
            say("Vuser 1:FINISHED FAILED")
            return
        counter = threading.Thread(target=self.count)
        counter.start()
        threads = [threading.Thread(target=self.drive, args=(number,)) for number in range(2, self.users + 2)]
        for thread in threads:
            thread.start()
        try:
            self.monitor()
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        if self.fault != "no profile":
            self.profile()
        say("Vuser 1:FINISHED SUCCESS")
        say("ALL VIRTUAL USERS COMPLETE")
        self.ended.set()
        counter.join()

    def monitor(self) -> None:
        ramp_up, minutes = int(self.settings["pg_rampup"]), int(self.settings["pg_duration"])
        with self.connect() as connection:
            say(f"Vuser 1:Beginning rampup time of {ramp_up} minutes")
            self.stop.wait(self.minute_s * ramp_up)
            say("Vuser 1:Rampup complete, Taking start Transaction Count.")
            before = [value(connection, text) for text in (_COUNTER, _ORDERS)]
            say(f"Vuser 1:Timing test period of {minutes} in minutes")
            if self.fault == "ends early":
                return
            if self.fault == "hangs":
                self.stop.wait(600)
            self.stop.wait(self.minute_s * minutes * (0.5 if self.fault == "half the time" else 1))
            say("Vuser 1:Test complete, Taking end Transaction Count.")
            tpm, nopm = (
                (value(connection, text) - int(then)) // minutes
                for text, then in zip((_COUNTER, _ORDERS), before, strict=True)
            )
        if self.fault == "no result":
            return
        if self.fault == "counts wrongly":
            nopm *= 10
        say(f"Vuser 1:{self.users} Active Virtual Users configured")
        say(f"Vuser 1:TEST RESULT : System achieved {nopm} NOPM from {tpm} PostgreSQL TPM")

    def count(self) -> None:
        with self.connect() as connection:
            old, interval_s = None, self.minute_s / 60
            while not self.ended.wait(interval_s):
                new = value(connection, _COUNTER)
                say(f"{0 if old is None else (new - old) * 60} PostgreSQL tpm")
                old = new

    def drive(self, number: int) -> None:
        draw, took = random.Random(number), self.calls.setdefault(number, {name: [] for name in _CALLS})
        lost = self.fault == "loses a user" and number == 2
        with self.connect() as connection:
            warehouses = value(connection, "SELECT max(w_id) FROM warehouse")
            w, only = draw.randint(1, warehouses), {"mixes badly": "NEWORD"}.get(self.fault)
            while not self.stop.wait(PAUSE_S):
                choice = draw.randint(1, 23)
                name = only or (
                    "NEWORD"
                    if choice <= 10
                    else "PAYMENT"
                    if choice <= 20
                    else ("DELIVERY", "SLEV", "OSTAT")[choice - 21]
                )
                values = {
                    "NEWORD": (w, warehouses, draw.randint(1, 10), draw.randint(1, 3000), draw.randint(5, 15)),
                    "PAYMENT": (
                        w,
                        d := draw.randint(1, 10),
                        w,
                        d,
                        draw.randint(1, 3000),
                        int(draw.random() < 0.6),
                        draw.randint(1, 5000),
                    ),
                    "DELIVERY": (w, draw.randint(1, 10)),
                    "SLEV": (w, 1 + number % 10, draw.randint(10, 20)),
                    "OSTAT": (w, draw.randint(1, 10), draw.randint(1, 3000), int(draw.random() < 0.6)),
                }[name]
                begin = time.monotonic()
                if self.fault == "is refused" and name == "NEWORD" and draw.random() < 0.5:
                    say(f"Vuser {number}:{_ERRORS[name]} Procedure Error set RAISEERROR for Details")
                else:
                    connection.execute(_CALLS[name].encode(), values)
                took[name].append(1e3 * (time.monotonic() - begin))
                if self.fault == "hides orders" and name == "NEWORD":
                    took[name].pop()
                if lost and len(took["PAYMENT"]) == 5:
                    say(f"Error in Virtual User {number}: server closed the connection unexpectedly")
                    say(f"Vuser {number}:FINISHED FAILED")
                    return
        say(f"Vuser {number}:FINISHED SUCCESS")

    def profile(self) -> None:
        """HammerDB's time profile: each user's, and their sum. That of 4.12 has no quarters, and its sum has every call twice."""
        rows = []
        for number, times in self.calls.items():
            rows += [f">>>>> VIRTUAL USER {number} : ELAPSED TIME : 1000ms", *self.section(times, 1)]
        whole = {name: [time for each in self.calls.values() for time in each[name]] for name in _CALLS}
        rows += [f">>>>> SUMMARY OF {len(self.calls)} ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 1000ms"]
        rows += [*self.section(whole, 2 if self.fault == "is old" else 1), "+-+-+-+"]
        (Path(os.environ["TMP"]) / "hdbxtprofile.log").write_text("\n".join(rows) + "\n")

    def section(self, measured: dict[str, list[float]], repeated: int) -> list[str]:
        rows = []
        for name, each in measured.items():
            if not (times := sorted(each)):
                continue
            at = {share: times[min(len(times) - 1, int(share * len(times)))] for share in (0.25, 0.5, 0.75, 0.95, 0.99)}
            quarters = "" if self.fault == "is old" else f"P75: {at[0.75]:.3f}ms\tP25: {at[0.25]:.3f}ms\t"
            mean = sum(times) / len(times)
            rows += [
                f">>>>> PROC: {name}",
                f"CALLS: {repeated * len(times)}\tMIN: {times[0]:.3f}ms\tAVG: {mean:.3f}ms\tMAX: {times[-1]:.3f}ms\tTOTAL: {sum(times):.3f}ms",
                f"P99: {at[0.99]:.3f}ms\tP95: {at[0.95]:.3f}ms\tP50: {at[0.5]:.3f}ms\t{quarters}SD: 1.000ms\tRATIO: 20.000%",
            ]
        return rows


def started_in_its_folder() -> None:
    """It does."""
    assert sys.argv[1:3] == ["tcl", "auto"], sys.argv
    assert Counter(Path.cwd().parts) == Counter(Path(sys.argv[0]).resolve().parent.parts), "it starts in its own folder"


if __name__ == "__main__":
    started_in_its_folder()
    Program(Path(sys.argv[3]))
