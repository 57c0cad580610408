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

What faults cost while alerts pour in. `make faults` writes this: it breaks a running service in
each of these ways, counts what the senders were told, and compares it with what is stored. A test
fails if anything is lost that was answered 200, or if anything is stored twice, so two columns
hold zeros; the others hold what came out. On SQLite and on Postgres, where both can break so.

{machine}

- *Sent* are the alerts of all senders, *accepted* those that were answered 200. *5xx* are answers
  that told the sender to try again: 503 with `Retry-After`, unless another status is named. *No
  answer* are connections that ended or that nobody took: nothing was promised there, and the alert
  may be stored.
- *Sender* and *visitor* are the longest waits for any answer, in seconds: of a sender, and of
  somebody who opens a page meanwhile.
- *Recovery* is the time in seconds from the end of the fault to the next alert that is accepted,
  and the longest of them where there are several faults. A kill ends as it begins; a service that
  is killed as a whole ends its fault when it is started. “—” stands where the fault lasted as long
  as the load.
"""

_ACCOUNTS = (
    *("fault", "database", "load", "sent", "accepted", "stored", "lost", "doubled", "5xx"),
    *("no answer", "sender", "visitor", "recovery"),
)

_ABOUT_PAGES = """\

## Pages

What people were sent while those who send were killed. A message that has just left may leave once
more, at most one for each kill.

"""

_PAGES = ("fault", "killed", "pages due", "messages", "lost", "sent again")

_MISSING = """\

## Without figures

These were not part of the run:

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
        f"Run on {dates}, on a machine of the class {machines}, with Python {pythons}. After each"
        f" test, the load average was {min(loads):.1f} to {max(loads):.1f}: other work ran beside"
        " the tests where it is far above the number of processors, and waits are longer for it."
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
        sys.exit("no test has kept an account")
    sys.stdout.write(document(runs, marks("fault")))


if __name__ == "__main__":
    main()
