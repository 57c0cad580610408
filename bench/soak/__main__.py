"""Runs all kinds of load for an hour, to find memory growth and lost data: `make soak`.

The soak prints its measurements every minute, and writes docs/evidence/soak.md after at least
twenty minutes on Postgres. The exit status is 1 if a claim fails.

    python -m bench.soak --minutes 3
    python -m bench.soak --minutes 20 --sqlite
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

from bench.durable_postgres import start_durable_postgres
from bench.machine import describe_machine
from bench.options import parse_positive
from bench.soak.callers import run_visitors
from bench.soak.claims import SoakResults, verify_claims
from bench.soak.document import format_soak
from bench.soak.keepers import build_keepers, check_stored_alerts
from bench.soak.ledger import AcceptedAlerts, ResponseLedger
from bench.soak.senders import build_senders
from bench.soak.soak_service import SECOND_STEP_SECONDS, SoakService, run_soak_service
from bench.soak.visitors import build_visitors
from bench.soak.watch import Measurement, measure_service
from domain.core.clock import read_system_clock

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "soak.md"
#: File with the findings of the last run.
_FINDINGS_FILE = Path(__file__).parents[1] / "results" / "soak.json"
_FINDINGS_ADAPTER = TypeAdapter(SoakResults)
#: Minimum duration in minutes for a document. A shorter run has no meaningful slope.
_MIN_DOCUMENT_MINUTES = 20
_MEASUREMENT_INTERVAL_SECONDS, _MEASUREMENTS_PER_COUNT = 15.0, 4
#: Seconds to wait for the second steps of the last pages, and for retries of messages.
_QUIET_SECONDS = SECOND_STEP_SECONDS + 30.0
_EXIT_STOPPED = 128 + signal.SIGTERM
_ERROR_PATTERN = re.compile(r'"level":"(?:ERROR|CRITICAL)"|^Traceback|"status":5\d\d')
#: Pattern for log lines about processes that the soak killed.
_KILL_PATTERN = re.compile(r'was sent SIGKILL|"status":-9')
_MAX_ERROR_LENGTH = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak and write the document."""
    # Without a handler, SIGTERM would leave servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_EXIT_STOPPED))
    parser = ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument(
        "--minutes", type=parse_positive, default=60, help="duration in minutes (60)"
    )
    parser.add_argument("--sqlite", action="store_true", help="use SQLite instead of Postgres")
    parser.add_argument(
        "--again", action="store_true", help="generate the report of the last run again"
    )
    given = parser.parse_args(arguments)
    if given.again:
        return _print_report(_FINDINGS_ADAPTER.validate_json(_FINDINGS_FILE.read_bytes()))
    with ExitStack() as stack:
        postgres = stack.enter_context(start_durable_postgres()).databases.new_database()
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-soak-")))
        machine = describe_machine(postgres)
        described = (
            f"on a machine with {machine.cores} processors ({machine.processor}), Python"
            f" {machine.python} and Postgres {machine.postgres}"
        )
        url = "" if given.sqlite else postgres
        service = stack.enter_context(run_soak_service(directory / "service", url))
        found = _run_soak(
            service, given.minutes, "SQLite" if given.sqlite else "Postgres", described
        )
    _FINDINGS_FILE.parent.mkdir(exist_ok=True)
    _FINDINGS_FILE.write_bytes(_FINDINGS_ADAPTER.dump_json(found, indent=1))
    return _print_report(found)


def _run_soak(service: SoakService, minutes: int, database: str, machine: str) -> SoakResults:
    ledger, titles, seconds = ResponseLedger(), AcceptedAlerts(), minutes * 60.0
    _print_line(f"Soak on {database} for {minutes} minutes")
    everybody = [
        *build_senders(service, ledger, titles),
        *build_visitors(service, ledger),
        *build_keepers(service, ledger, titles, seconds),
    ]
    sights: list[Measurement] = []
    with run_visitors(everybody, ledger):
        while ledger.now < seconds:
            _measure_service(service, ledger, sights)
    _wait_for_pages(service)
    check_stored_alerts(service, titles, older_than=0.0)
    sights.append(measure_service(service, ledger.now, counts=True))
    pages = service.postbox.pages
    return SoakResults(
        date=f"{read_system_clock():%Y-%m-%d}",
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
        pages_not_due=pages.unexpected,
        receivers={
            name: (each.taken, each.refused, each.late) for name, each in service.receivers.items()
        },
        complaints=[
            line[:_MAX_ERROR_LENGTH]
            for line in service.live.log_text().splitlines()
            if _ERROR_PATTERN.search(line) and not _KILL_PATTERN.search(line)
        ],
    )


def _measure_service(
    service: SoakService, ledger: ResponseLedger, sights: list[Measurement]
) -> None:
    began = monotonic()
    try:
        sight = measure_service(
            service, ledger.now, counts=len(sights) % _MEASUREMENTS_PER_COUNT == 0
        )
    except SQLAlchemyError as error:  # a failed measurement must not end the whole soak
        ledger.note("database measurement", type(error).__name__, is_right=False)
        sight = measure_service(service, ledger.now, counts=False)
    sights.append(sight)
    if sight.rows:
        _print_line(_format_line(sight, ledger))
    sleep(max(0.0, _MEASUREMENT_INTERVAL_SECONDS - (monotonic() - began)))


def _format_line(sight: Measurement, ledger: ResponseLedger) -> str:
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


def _wait_for_pages(service: SoakService) -> None:
    deadline = monotonic() + _QUIET_SECONDS
    while service.postbox.pages.missing and monotonic() < deadline:
        sleep(1.0)


def _print_report(found: SoakResults) -> int:
    document = format_soak(found)
    if found.minutes >= _MIN_DOCUMENT_MINUTES and found.database == "Postgres":
        DOCUMENT.write_text(document, encoding="utf-8")
        _print_line(f"The document is in {DOCUMENT}.")
    else:
        _print_line(document)
    for each in found.wrong:
        kill = " after a kill" if each.after_kill else ""
        _print_line(f"Wrong response at {each.at:.0f} s{kill}: {each}")
    failed = [each for each in verify_claims(found) if not each.holds]
    for claim in failed:
        _print_line(f"Failed claim: {claim.sentence} {claim.seen}")
    return 1 if failed else 0


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
