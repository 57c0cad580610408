"""Measures the worker's periodic jobs on a large database."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import perf_counter

from flask import Flask

from bench.scale.large import LargeDatabase
from bench.scale.walk import PageWalk, WalkedRequest, collect_statements
from domain.housekeeping.pruning import DeliveryCheckProgress
from web.jobs.mail import queue_due_mail
from web.jobs.retention import (
    deactivate_idle_accounts,
    prune_database,
    resolve_unreported_alerts,
    run_deletions,
    seal_audit_events,
    update_daily_counts,
)
from web.settings.environment import Settings

#: Periodic jobs. Nothing in the database is due, so the measured time is the cost of every turn.
_PERIODIC_JOBS: Mapping[str, Callable[[Settings], object]] = {
    "prune, first run of a day": prune_database,
    "prune": partial(prune_database, checked_deliveries=DeliveryCheckProgress()),
    "add_up": update_daily_counts,
    "seal_audit_events": seal_audit_events,
    "silent": resolve_unreported_alerts,
    "delete": run_deletions,
    "deactivate": deactivate_idle_accounts,
    "queue_mail": queue_due_mail,
}


def measure_jobs(app: Flask, database: LargeDatabase, walk: PageWalk) -> Iterator[WalkedRequest]:
    """Run each job twice; yield the results of the second turn and of its slow statements."""
    for name, run in _PERIODIC_JOBS.items():
        with app.app_context():
            run(database.settings())
            began = perf_counter()
            with collect_statements() as sent:
                run(database.settings())
        took = (perf_counter() - began) * 1000
        yield WalkedRequest(
            rule=f"job {name}", address=name, status=200, milliseconds=took, statements=len(sent)
        )
        for each in sorted(sent, key=lambda one: -one.milliseconds)[:8]:
            if each.milliseconds > 20:  # noqa: PLR2004 - others cost nothing every ten minutes
                yield WalkedRequest(
                    rule=f"job {name}: statement",
                    address=each.query[:160].replace("\n", " "),
                    status=200,
                    milliseconds=each.milliseconds,
                    **walk.explain_slow_statements([each]),
                )
