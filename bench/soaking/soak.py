"""Everything at once for an hour, to see what grows: `make soak`.

Sign-ins, consents, tokens of all grants, single alerts, webhooks that fire and recover, pages, Git
clones, lists, exports, checks of sources, and pruning of what was kept for minutes, on the service
as `make run` starts it. It writes bench/results/soak.md.

    python -m bench.soaking.soak --minutes 8 --sqlite
"""

import json
import signal
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic, sleep

from sqlalchemy import update

from bench.alert_bodies import metrics_webhook
from bench.durable_postgres import durable_postgres
from bench.neighbours.neighbours import (
    clones,
    exports,
    going_on,
    page_everybody,
    password_storm,
    release_checks,
    searches,
)
from bench.neighbours.place import Place, Sizes, running_place
from bench.options import positive
from bench.soaking.report import as_markdown
from bench.soaking.watch import Look, look_at
from models import Delivery
from tests.faults.balancer import Balancer, clients_at_work
from tests.support.accounts.people import database_of, now

_RESULT = Path(__file__).parents[1] / "results" / "soak.md"
_SIZES = Sizes(repository_mib=32, stored_alerts=2_000, people=100)
_CLIENTS = 3
_LOOK_SECONDS = 10.0
_PRUNE_SECONDS = 60.0
_STOPPED = 128 + signal.SIGTERM
_SETTINGS = {
    "ACCESS_TOKEN_LIFETIME_SECONDS": "300",
    "DELIVERY_KEEP_DAYS": "1",
}
#: Nothing is kept for less than a day: what is older than the first becomes as old as the second.
_MINUTES, _LONG = timedelta(minutes=3), timedelta(days=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, and write the report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_STOPPED))
    parser = ArgumentParser(prog="python -m bench.soaking.soak", description=__doc__)
    parser.add_argument("--minutes", type=positive, default=60)
    parser.add_argument("--sqlite", action="store_true", help="on SQLite instead of Postgres")
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        url = (
            "" if given.sqlite else stack.enter_context(durable_postgres()).databases.new_database()
        )
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-soak-")))
        here = running_place(directory / "service", url, _SIZES, settings=_SETTINGS)
        place = stack.enter_context(here)
        _say(f"soaking on {place.database} for {given.minutes} minutes")
        looks, answers = _soak(place, given.minutes * 60)
        complaints = place.live.complaints()
    title = f"{given.minutes} minutes of everything at once, {place.database}"
    report = as_markdown(title, looks, answers)
    _RESULT.parent.mkdir(exist_ok=True)
    _RESULT.write_text(report, encoding="utf-8")
    _say(f"{report}\nThe last warnings of the log:\n{complaints}\n\nAlso in {_RESULT}.")
    return 0


def _soak(place: Place, seconds: float) -> tuple[list[Look], dict[str, Counter[str]]]:
    looks: list[Look] = []
    answers: dict[str, Counter[str]] = {}
    with ExitStack() as stack:
        record = stack.enter_context(clients_at_work(Balancer([place.live]), _CLIENTS, pause=1.0))
        for name, work in {
            "sign-ins": password_storm(place, 3.0),
            "webhooks": going_on(_webhooks(place), pause=1.0),
            "pages": going_on(lambda _end: page_everybody(place.crowd), pause=20.0),
            "clones": clones(place, 5.0),
            "lists": searches(place, 2.0),
            "exports": exports(place, 15.0),
            "release checks": release_checks(place, 15.0),
            "prunes": going_on(_prunes(place), pause=_PRUNE_SECONDS),
        }.items():
            answers[name] = stack.enter_context(work)
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            looks.append(look_at(place.live, passed))
            _say(_line(looks[-1]))
            sleep(_LOOK_SECONDS)
        looks.append(look_at(place.live, monotonic() - began))
    answers["clients"] = record.answers
    answers["failures of clients"] = Counter(record.failures)
    return looks, answers


def _webhooks(place: Place) -> Callable[[Event], str]:
    """Return what lets a hundred alerts fire, and recover the next time."""
    numbers = count()

    def turn(_end: Event) -> str:
        number = next(numbers)
        webhook = json.loads(metrics_webhook(100, f"soak{number // 2}x"))
        if number % 2:
            for alert in webhook["alerts"]:
                alert |= {"status": "resolved", "endsAt": "2026-11-21T08:00:00Z"}
        return str(place.metrics.post(json.dumps(webhook).encode()).status_code)

    return turn


def _prunes(place: Place) -> Callable[[Event], str]:
    def turn(_end: Event) -> str:
        moment = now()
        old = Delivery.received_at < moment - _MINUTES
        with database_of(place.live) as session:
            session.execute(update(Delivery).where(old).values(received_at=moment - _LONG))
        return str(place.live.run_program("prune").returncode)

    return turn


def _line(look: Look) -> str:
    each = look.processes.values()
    sizes = " ".join(f"{use.name} {use.resident_mib:.0f}" for use in each)
    return f"{look.seconds:>6.0f} s  {sizes}  connections {look.connections}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
