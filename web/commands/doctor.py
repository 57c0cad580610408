"""The command that looks for what is wrong with an installation."""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import click
from flask.cli import ScriptInfo
from sqlalchemy.exc import SQLAlchemyError

from web.commands.doctor_checks.findings import Finding, State, failed
from web.commands.failures import sentence_about
from web.commands.output import print_answer
from web.extensions import db
from web.services import services
from web.settings.reader import Settings, SettingsError

#: The worst last.
_ORDER = (State.OK, State.WARNING, State.FAILED)


class Check(NamedTuple):
    """A check: where it is, and whether it needs a database that answers."""

    name: str
    check: Callable[[Settings], Iterator[Finding]]
    needs_database: bool = True


def _checks() -> tuple[Check, ...]:
    from web.commands.doctor_checks import keys, programs, proxies, storage  # noqa: PLC0415 - slow

    return (
        Check("version", programs.check_version, needs_database=False),
        Check("database", storage.check_database),
        Check("migrations", storage.check_migrations),
        Check("keys", keys.check_keys),
        Check("settings", keys.check_settings),
        Check("clock", storage.check_clock),
        Check("disk", storage.check_disk, needs_database=False),
        Check("worker", programs.check_worker),
        Check("hosts", programs.check_hosts),
        Check("pages", programs.check_queue),
        Check("mail", programs.check_mail),
        Check("proxy", proxies.check_proxy, needs_database=False),
        Check("certificate", keys.check_certificate, needs_database=False),
        Check("rate limits", keys.check_counters, needs_database=False),
        Check("rate limits", programs.check_separate_counts),
        Check("backups", storage.check_backups),
        Check("git", storage.check_git, needs_database=False),
    )


@click.command("doctor")
@click.pass_context
def doctor(context: click.Context) -> None:
    """Check database, disk, worker, mail, proxy, clock, keys and migrations.

    It only writes one row, to see whether the database accepts writes. The exit status is 1 if a
    check has failed, and 0 if there are only warnings.
    """
    try:
        app = context.ensure_object(ScriptInfo).load_app()
    except SettingsError as error:
        _print([("settings", failed(str(error)))])
        return
    with app.app_context():
        found = list(_findings(services().live_settings.environment))
        db.session.remove()
    _print(found)


def _findings(settings: Settings) -> Iterator[tuple[str, Finding]]:
    is_away = False
    for name, check, needs_database in _checks():
        if is_away and needs_database:
            continue
        found = list(_found(check, settings))
        is_away = is_away or (name in {"database", "migrations"} and _is_worst(found))
        # A remark says more than that the rest is well.
        shown = [each for each in found if each.state is not State.OK] or found
        yield from ((name, each) for each in shown)


def _is_worst(found: list[Finding]) -> bool:
    return any(each.state is State.FAILED for each in found)


def _found(check: Callable[[Settings], Iterator[Finding]], settings: Settings) -> Iterator[Finding]:
    """Return what a check finds; one that cannot be made has failed."""
    try:
        yield from check(settings)
    except (SQLAlchemyError, OSError) as error:
        db.session.rollback()
        yield failed(sentence_about(error) or f"{type(error).__name__}: {error}")


def _print(found: list[tuple[str, Finding]]) -> None:
    worst = max((each.state for _, each in found), key=_ORDER.index)
    rows = [{"check": name, "state": each.state, "message": each.message} for name, each in found]
    print_answer({"state": worst, "checks": rows})
    sys.exit(1 if worst is State.FAILED else 0)
