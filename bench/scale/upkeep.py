"""Measures the worker's periodic jobs on a large database."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import perf_counter

from flask import Flask

from bench.scale.large import LargeDatabase
from bench.scale.walk import Asked, Walk, timed_statements
from domain.housekeeping.pruning import KeptDeliveries
from web.jobs.mail import queue_due_mail
from web.jobs.retention import (
    add_up_days,
    deactivate_idle_accounts,
    prune_database,
    resolve_silent_alerts,
    run_deletions,
    seal_audit_events,
)
from web.settings.reader import Settings

#: Periodic jobs. Nothing in the database is due, so the measured time is the cost of every turn.
_JOBS: Mapping[str, Callable[[Settings], object]] = {
    "prune, first run of a day": prune_database,
    "prune": partial(prune_database, kept=KeptDeliveries()),
    "add_up": add_up_days,
    "seal_audit_events": seal_audit_events,
    "silent": resolve_silent_alerts,
    "delete": run_deletions,
    "deactivate": deactivate_idle_accounts,
    "queue_mail": queue_due_mail,
}


def jobs_at_work(app: Flask, database: LargeDatabase, walk: Walk) -> Iterator[Asked]:
    """Run each job twice; yield the results of the second turn and of its slow statements."""
    for name, run in _JOBS.items():
        with app.app_context():
            run(database.settings())
            began = perf_counter()
            with timed_statements() as sent:
                run(database.settings())
        took = (perf_counter() - began) * 1000
        yield Asked(
            rule=f"job {name}", address=name, status=200, milliseconds=took, statements=len(sent)
        )
        for each in sorted(sent, key=lambda one: -one.milliseconds)[:8]:
            if each.milliseconds > 20:  # noqa: PLR2004 - others cost nothing every ten minutes
                yield Asked(
                    rule=f"job {name}: statement",
                    address=each.query[:160].replace("\n", " "),
                    status=200,
                    milliseconds=each.milliseconds,
                    **walk.looked_at([each]),
                )
