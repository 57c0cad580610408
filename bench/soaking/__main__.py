"""Runs all kinds of load for an hour, to find memory growth and lost data: `make soak`.

The soak prints its measurements every minute, and writes docs/evidence/soak.md after at least
twenty minutes on Postgres. The exit status is 1 if a claim fails.

    python -m bench.soaking --minutes 3
    python -m bench.soaking --minutes 20 --sqlite
"""

import re
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from pydantic import TypeAdapter
from sqlalchemy.exc import SQLAlchemyError

from bench.durable_postgres import durable_postgres
from bench.machine import describe
from bench.options import positive
from bench.soaking.callers import at_work
from bench.soaking.claims import Findings, claims
from bench.soaking.document import as_markdown
from bench.soaking.ground import SECOND_STEP_SECONDS, Ground, running_ground
from bench.soaking.keepers import keepers, look_for
from bench.soaking.ledger import Ledger, Titles
from bench.soaking.senders import senders
from bench.soaking.visitors import visitors
from bench.soaking.watch import Sight, look_at
from domain.core.clock import system_clock

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "soak.md"
#: File with the findings of the last run.
_KEPT = Path(__file__).parents[1] / "results" / "soak.json"
_FINDINGS = TypeAdapter(Findings)
#: Minimum duration in minutes for a document. A shorter run has no meaningful slope.
_WORTH_A_DOCUMENT = 20
_LOOK_SECONDS, _COUNTED_OF = 15.0, 4
#: Seconds to wait for the second steps of the last pages, and for retries of messages.
_QUIET_SECONDS = SECOND_STEP_SECONDS + 30.0
_STOPPED = 128 + signal.SIGTERM
_ERROR = re.compile(r'"level":"(?:ERROR|CRITICAL)"|^Traceback|"status":5\d\d')
#: Pattern for log lines about processes that the soak killed.
_OF_KILLS = re.compile(r'was sent SIGKILL|"status":-9')
_LONGEST_COMPLAINT = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak and write the document."""
    # Without a handler, SIGTERM would leave servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_STOPPED))
    parser = ArgumentParser(prog="python -m bench.soaking", description=__doc__)
    parser.add_argument("--minutes", type=positive, default=60, help="duration in minutes (60)")
    parser.add_argument("--sqlite", action="store_true", help="use SQLite instead of Postgres")
    parser.add_argument(
        "--again", action="store_true", help="generate the report of the last run again"
    )
    given = parser.parse_args(arguments)
    if given.again:
        return _report(_FINDINGS.validate_json(_KEPT.read_bytes()))
    with ExitStack() as stack:
        postgres = stack.enter_context(durable_postgres()).databases.new_database()
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-soak-")))
        machine = describe(postgres)
        described = (
            f"on a machine with {machine.cores} processors ({machine.processor}), Python"
            f" {machine.python} and Postgres {machine.postgres}"
        )
        url = "" if given.sqlite else postgres
        ground = stack.enter_context(running_ground(directory / "service", url))
        found = _soak(ground, given.minutes, "SQLite" if given.sqlite else "Postgres", described)
    _KEPT.parent.mkdir(exist_ok=True)
    _KEPT.write_bytes(_FINDINGS.dump_json(found, indent=1))
    return _report(found)


def _soak(ground: Ground, minutes: int, database: str, machine: str) -> Findings:
    ledger, titles, seconds = Ledger(), Titles(), minutes * 60.0
    _say(f"Soak on {database} for {minutes} minutes")
    everybody = [
        *senders(ground, ledger, titles),
        *visitors(ground, ledger),
        *keepers(ground, ledger, titles, seconds),
    ]
    sights: list[Sight] = []
    with at_work(everybody, ledger):
        while ledger.now < seconds:
            _look(ground, ledger, sights)
    _wait_for_pages(ground)
    look_for(ground, titles, older_than=0.0)
    sights.append(look_at(ground, ledger.now, counts=True))
    pages = ground.postbox.pages
    return Findings(
        date=f"{system_clock():%Y-%m-%d}",
        machine=machine,
        database=database,
        minutes=minutes,
        sights=sights,
        answers=ledger.answers,
        longest=ledger.longest,
        wrong=ledger.wrong,
        kills=ledger.kills,
        alerts=titles.accepted,
        lost=titles.lost,
        doubled=titles.doubled,
        pages=len(pages.due),
        messages=pages.messages,
        pages_missing=pages.missing,
        pages_again=pages.again,
        pages_not_due=pages.not_due,
        receivers={
            name: (each.taken, each.refused, each.late) for name, each in ground.receivers.items()
        },
        complaints=[
            line[:_LONGEST_COMPLAINT]
            for line in ground.live.log_text().splitlines()
            if _ERROR.search(line) and not _OF_KILLS.search(line)
        ],
    )


def _look(ground: Ground, ledger: Ledger, sights: list[Sight]) -> None:
    began = monotonic()
    try:
        sight = look_at(ground, ledger.now, counts=len(sights) % _COUNTED_OF == 0)
    except SQLAlchemyError as error:  # a failed measurement must not end the whole soak
        ledger.note("database measurement", type(error).__name__, is_right=False)
        sight = look_at(ground, ledger.now, counts=False)
    sights.append(sight)
    if sight.rows:
        _say(_line(sight, ledger))
    sleep(max(0.0, _LOOK_SECONDS - (monotonic() - began)))


def _line(sight: Sight, ledger: Ledger) -> str:
    sizes = " ".join(
        f"{use.name} {use.proportional:.1f}/{use.files}/{use.threads}"
        for use in sight.processes.values()
    )
    waiting = {name: count for name, count in sight.queues.items() if count}
    wrong = [each for each in ledger.wrong if not each.after_kill]
    last = f" {wrong[-1].what}: {wrong[-1].said!r}" if wrong else ""
    return (
        f"{sight.seconds:>6.0f} s  {sizes}  connections {sight.connections}"
        f"  messages {sight.messages}  processor {sight.processor:.0f} s  waiting {waiting}"
        f"  alerts {sight.rows.get('alerts')}  deliveries {sight.rows.get('deliveries')}"
        f"  tokens {sight.rows.get('access_tokens')}  wrong {len(wrong)}{last}"
    )


def _wait_for_pages(ground: Ground) -> None:
    deadline = monotonic() + _QUIET_SECONDS
    while ground.postbox.pages.missing and monotonic() < deadline:
        sleep(1.0)


def _report(found: Findings) -> int:
    document = as_markdown(found)
    if found.minutes >= _WORTH_A_DOCUMENT and found.database == "Postgres":
        DOCUMENT.write_text(document, encoding="utf-8")
        _say(f"The document is in {DOCUMENT}.")
    else:
        _say(document)
    for each in found.wrong:
        kill = " after a kill" if each.after_kill else ""
        _say(f"Wrong response at {each.at:.0f} s{kill}: {each}")
    failed = [each for each in claims(found) if not each.holds]
    for claim in failed:
        _say(f"Failed claim: {claim.sentence} {claim.seen}")
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
