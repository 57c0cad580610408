"""Writes docs/evidence/reliability.md: the cost of each fault, from the counts of its test.

`make faults` empties the folder of accounts, runs the tests and writes the document if all of them
passed. Each test that is marked `fault` stores a file there, with the figures of that run.
"""

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.coverage.coverage_table import marks
from tests.faults.account import Kept

Run = dict[str, Any]

_INTRODUCTION = """\
# Reliability

This page shows the effects of faults while clients send alerts. `make faults` generates it. Each
test causes a fault in a running service, counts the responses, and compares them with the stored
alerts. A test fails if an alert that was accepted with 200 is lost, or if an alert is stored twice.
The columns *lost* and *duplicated* are therefore always 0. Faults that can affect both databases
are tested on SQLite and on Postgres.

{machine}

- *Sent* is the number of alerts from all senders, and *accepted* is the number of 200 responses.
- *5xx* is the number of responses after which the sender should retry. Their status is 503 with
  `Retry-After` unless the table shows another status.
- *No response* is the number of connections that were closed without a response or were not
  accepted. The alerts on these connections are not acknowledged, but may be stored.
- *Sender wait* is the longest wait for a response to an alert, in seconds. *Page wait* is the
  longest wait for a page that another client requests repeatedly.
- *Recovery* is the number of seconds from the end of the fault to the next accepted alert, or the
  longest such time if there are several faults. If a process is killed, the fault ends at the time
  of the kill. If the service is killed, the fault ends when the service is started again. “—” means
  that the fault lasted as long as the load.
"""

_ACCOUNTS = (
    *("fault", "database", "load", "sent", "accepted", "stored", "lost", "duplicated", "5xx"),
    *("no response", "sender wait", "page wait", "recovery"),
)

_ABOUT_PAGES = """\

## Pages

The table shows the messages that users received while processes that send messages were killed. At
most one message per kill may be sent twice. A message can contain many pages. *Duplicated* counts
the pages of such messages.

"""

_PAGES = ("fault", "kills", "expected pages", "messages", "lost", "duplicated")

_MISSING = """\

## Not measured

These faults were not part of the run:

"""


def keep(folder: Path, test: str, fault: str, kept: Kept) -> None:
    """Store the counts of one test."""
    folder.mkdir(parents=True, exist_ok=True)
    run = {
        "test": test,
        "fault": fault,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "accounts": [vars(each) for each in kept.accounts],
        "pages": [vars(each) for each in kept.pages],
    }
    name = sha256(test.encode()).hexdigest()[:16]
    (folder / f"{name}.json").write_text(json.dumps(run, indent=1), encoding="utf-8")


def document(runs: Sequence[Run], faults: dict[str, list[str]]) -> str:
    """Return the text of docs/evidence/reliability.md; `faults` names the expected tests."""
    ordered = sorted(
        runs, key=lambda run: (run["test"].partition("[")[0], run["fault"], run["test"])
    )
    accounts = [(run["fault"], each) for run in ordered for each in run["accounts"]]
    pages = [(run["fault"], each) for run in ordered for each in run["pages"]]
    been = {_test_of(run) for run in runs}
    missing = [
        f"- {fault.replace('{', '').replace('}', '')}: `{test.partition('::')[0]}`\n"
        for fault, tests in faults.items()
        for test in tests
        if test not in been
    ]
    return "".join(
        (
            _INTRODUCTION.format(machine=_machine(runs)),
            "\n## Alerts\n\n",
            *_table(_ACCOUNTS, (_account(*each) for each in accounts)),
            _ABOUT_PAGES,
            *_table(_PAGES, (_page(*each) for each in pages)),
            *((_MISSING, *missing) if missing else ()),
        )
    )


def _test_of(run: Run) -> str:
    return str(run["test"].partition("[")[0])


def _machine(runs: Sequence[Run]) -> str:
    dates, machines, pythons = (
        ", ".join(sorted({run[name] for run in runs})) for name in ("date", "machine", "python")
    )
    loads = [run["load"] for run in runs]
    return (
        f"Run on {dates} ({machines}, Python {pythons}). The load average after each test was"
        f" {min(loads):.1f} to {max(loads):.1f}. A load average far above the number of processors"
        " means that other programs ran at the same time, which makes waits longer."
    )


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    for cells in (names, ["---"] * len(names), *rows):
        yield f"| {' | '.join(map(str, cells))} |\n"


def _account(fault: str, account: dict[str, Any]) -> Sequence[object]:
    answered = {int(status): count for status, count in account["answered"].items()}
    errors = [_error(status, answered[status]) for status in sorted(answered) if status >= 500]
    return (
        fault,
        account["database"],
        account["load"],
        f"{account['sent']:,}",
        f"{answered.get(200, 0):,}",
        "—" if account["stored"] is None else f"{account['stored']:,}",
        account["lost"],
        account["doubled"],
        ", ".join(errors) or "0",
        f"{account['reset'] + account['unheard']:,}",
        f"{account['longest_wait']:.2f}",
        _seconds(account["others_wait"]),
        _seconds(account["recovery"]),
    )


def _seconds(wait: float | None) -> str:
    return "—" if wait is None else f"{wait:.2f}"


def _error(status: int, count: int) -> str:
    return f"{count:,}" if status == 503 else f"{count:,} of {status}"


def _page(fault: str, pages: dict[str, Any]) -> Sequence[object]:
    return (fault, *(pages[name] for name in ("kills", "pages", "messages", "lost", "doubled")))


def _kept_in(folder: Path) -> Iterator[Run]:
    for file in sorted(folder.glob("*.json")):
        yield json.loads(file.read_text(encoding="utf-8"))


def main() -> None:
    """Print the document of the accounts in a folder."""
    if not (runs := list(_kept_in(Path(sys.argv[1])))):
        sys.exit("There are no results of tests.")
    sys.stdout.write(document(runs, marks("fault")))


if __name__ == "__main__":
    main()
