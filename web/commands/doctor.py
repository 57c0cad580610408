"""Command that checks an installation for problems."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
from flask.cli import ScriptInfo
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from domain.accounts.passwords import FIRST_USERNAME, has_first_password
from domain.alerts.change_feed import Follower, oldest_changes
from domain.core.clock import date_and_time
from domain.core.encryption import outgoing_tls_context
from domain.core.hosts import LONGEST_SILENCE, PRUNE, WORKER_HEARTBEAT, last_turn, list_present
from domain.core.job_results import FAILURE_SHOWN_FOR, backup_state, list_failed_jobs
from domain.core.secret_keys import missing_fingerprints
from domain.delivery.mail.outbox import queue_state
from domain.delivery.mail.smtp import Mailer, MailError
from domain.housekeeping.clock_corrections import ahead_remark, correction_remark
from domain.housekeeping.rekeying import rotation
from domain.paging.escalations.lifecycle import oldest_due_step
from domain.paging.notifications.queue_state import count_overdue, states_by_type
from web.admin.security_warnings import security_warnings
from web.admin.settings import settings_now
from web.build import running_build
from web.commands.backups.postgres import version_of
from web.commands.output import print_answer
from web.commands.transaction import sentence_about
from web.database.clocks import clock_lead_ms, in_words, is_too_much
from web.database.schema import FIRST_RELEASE, SchemaState, newest_known_revision, schema_state
from web.database.sessions import Pooler, find_pooler, session_problem
from web.database.start_checks import reasons_in_a_sentence
from web.database.start_errors import CannotStartError
from web.extensions import db
from web.http.transactions import roll_back
from web.interpreter import describe_interpreter, is_optimized
from web.outgoing.mail_server import mail_server, sender_of
from web.pages.templating import duration, pluralize
from web.sealing.sealer import HEADER, new_probe
from web.server.memory_limits import memory_limit_mib, memory_warning, needed_mib
from web.server.tls import CertificateFilesError, open_certificate
from web.services import git, now, services
from web.settings.reader import Settings, SettingsError, misspelt_in_environment

_OTHERS = 0o077
#: Longest time between reports of a worker, which reports every minute unless it is very busy.
_REPORTS_WITHIN = timedelta(seconds=100)
#: Longest time since the last pruning: two periods, and some time for it to end.
_PRUNED_WITHIN = timedelta(minutes=30)
#: Waiting times of pages and email that cause a warning. Normally they are sent within seconds or
#: minutes.
_PAGES_WAIT, _MAIL_WAITS = timedelta(minutes=2), timedelta(minutes=15)
#: Consequences of waiting alert changes for each follower.
_FOLLOWERS = {
    Follower.ESCALATIONS: "nobody is paged for them",
    Follower.INCIDENTS: "no rule opens incidents for them",
    Follower.WEBHOOKS: "no webhook receives them",
}
_SECONDS = 10.0
#: Documentation address (RFC 5737) that no client has.
FORGED = "192.0.2.1"
_OK = 200
_MIB, _GIB = 1024**2, 1024**3
#: Free space in bytes below which writes soon fail, and below which there is a warning.
_TOO_LITTLE, _LITTLE = 256 * _MIB, 2048 * _MIB
#: Number of free inodes below which writes soon fail, regardless of free space.
_FEW_FILES = 1_000
_OTHER_PYTHONS = (
    "Install an optimized Python (docs/deployment.md#choose-a-python), remove .venv and start "
    "again."
)
_KINDS = {"postgresql": "Postgres", "sqlite": "SQLite"}


class State(StrEnum):
    """State of a check, from best to worst."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """Result of a check, as a state and a sentence."""

    state: State
    message: str


#: Constructors of findings: no problem, a warning, and a failure.
ok, warning, failed = (partial(Finding, state) for state in State)


class Check(NamedTuple):
    """Check with its name, its function, and whether it needs a reachable database."""

    name: str
    check: Callable[[Settings], Iterator[Finding]]
    needs_database: bool = True


@click.command("doctor")
@click.pass_context
def doctor(context: click.Context) -> None:
    """Check the installation for problems with its database, disk, worker, mail and proxy.

    The command also checks clocks, keys, migrations, backups and settings. It writes one row to
    check that the database accepts writes. The exit status is 1 if a check fails, and 0 if there
    are only warnings.
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
    for name, check, needs_database in _CHECKS:
        if is_away and needs_database:
            continue
        found = list(_found(check, settings))
        is_away = is_away or (name in {"database", "migrations"} and _is_worst(found))
        # Positive results are only shown if there are no others.
        shown = [each for each in found if each.state is not State.OK] or found
        yield from ((name, each) for each in shown)


def _is_worst(found: list[Finding]) -> bool:
    return any(each.state is State.FAILED for each in found)


def _found(check: Callable[[Settings], Iterator[Finding]], settings: Settings) -> Iterator[Finding]:
    """Run a check and yield its findings, or a failure if the check itself fails."""
    try:
        yield from check(settings)
    except (SQLAlchemyError, CannotStartError, OSError) as error:
        yield failed(sentence_about(error) or f"{type(error).__name__}: {error}")
    finally:
        # The next check may need another connection, and a pooler may have only one.
        roll_back()


def _print(found: list[tuple[str, Finding]]) -> None:
    worst = max((each.state for _, each in found), key=[*State].index)
    rows = [{"check": name, "state": each.state, "message": each.message} for name, each in found]
    print_answer({"state": worst, "checks": rows})
    sys.exit(1 if worst is State.FAILED else 0)


def check_settings(settings: Settings) -> Iterator[Finding]:
    """Check for misspelled names and for settings that weaken security."""
    for sentence in misspelt_in_environment():
        yield warning(sentence)
    for risk in security_warnings(settings_now(session=db.session())):
        yield warning(f"{risk.setting.upper()} {risk.words}")
    if has_first_password(FIRST_USERNAME, settings.instance_path):
        yield warning(f"The generated password of {FIRST_USERNAME} is still in use.")
    yield ok("No variable looks misspelled, and no setting weakens security.")


def check_keys(settings: Settings) -> Iterator[Finding]:
    """Check whether this host has the keys that the database was written with."""
    session, keyring = db.session(), services().keyring
    missing = missing_fingerprints(keyring, session=session)
    if missing:
        yield failed(
            "SECRET_KEY and SECRET_KEY_FALLBACKS lack the keys with these fingerprints: "
            f"{', '.join(missing)}."
        )
        return
    unreadable = sum(rotation(keyring, session=session, now=now()).unreadable.values())
    if unreadable:
        yield failed(
            f"{pluralize(unreadable, 'stored key')} cannot be decrypted. "
            "See `gatebell secrets status`."
        )
    for name in ("secret_key", "gatebell.db"):
        yield from _kept_private(settings.instance_path / name)
    yield ok("SECRET_KEY matches the database.")


def _kept_private(file: Path) -> Iterator[Finding]:
    # Files in a folder that is closed to other users are private in any case.
    if file.exists() and file.stat().st_mode & file.parent.stat().st_mode & _OTHERS:
        yield warning(f"Other users can read {file}. Run `chmod 600 {file}`.")


def check_certificate(settings: Settings) -> Iterator[Finding]:
    """Check when the certificate of our own TLS expires."""
    try:
        certificate = open_certificate(settings)
    except CertificateFilesError as error:
        yield failed(str(error))
        return
    if certificate is None:
        yield ok("TLS_CERTIFICATE is not set; a proxy can provide TLS.")
        return
    for said in (certificate.expiry_warning(), certificate.host_warning(settings.base_url)):
        if said:
            yield warning(said)
    yield ok(f"The certificate is valid until {date_and_time(certificate.expires_at)}.")


def check_counters(settings: Settings) -> Iterator[Finding]:
    """Check the store in which rate limits are counted."""
    if settings.counts_on_host:
        return
    from limits.storage import storage_from_string  # noqa: PLC0415 - few installations need it

    from web.limit_storage import storage_configuration  # noqa: PLC0415

    made = storage_configuration(settings.ratelimit_storage_uri, settings.trusted_ca_file)
    storage = storage_from_string(
        made["RATELIMIT_STORAGE_URI"], **made.get("RATELIMIT_STORAGE_OPTIONS", {})
    )
    if storage.check():
        yield ok("The store of rate limits is reachable.")
    else:
        yield failed("RATELIMIT_STORAGE_URI is unreachable, so each web process counts separately.")


def check_version(settings: Settings) -> Iterator[Finding]:
    """Report the version of Gatebell."""
    del settings
    yield ok(f"Gatebell {running_build()}.")


def check_python(settings: Settings) -> Iterator[Finding]:
    """Check whether Python was built with optimization."""
    del settings
    said = f"Python {describe_interpreter()}"
    if is_optimized():
        yield ok(f"{said}.")
    else:
        yield warning(
            f"{said}, so the service needs up to a sixth more processor time. {_OTHER_PYTHONS}"
        )


def check_worker(settings: Settings) -> Iterator[Finding]:
    """Check when a background worker last reported, and when it last pruned."""
    del settings
    session, moment = db.session(), now()
    seen_at = last_turn(WORKER_HEARTBEAT, session=session)
    if seen_at is None:
        yield failed("No background worker has ever reported, so nobody is paged.")
        return
    silence = moment - seen_at
    if silence < -LONGEST_SILENCE:
        # A running worker corrects this within a minute.
        yield failed("The latest report of the background worker has a time in the future.")
        return
    if silence > LONGEST_SILENCE:
        yield failed(
            f"No background worker has reported for {_words(silence)}, so nobody is paged."
        )
        return
    if silence > _REPORTS_WITHIN:
        yield warning(f"The background worker has not reported for {_words(silence)}. It may hang.")
    else:
        yield ok("A background worker is running.")
    pruned_at = last_turn(PRUNE, session=session)
    if pruned_at is not None and moment - pruned_at > _PRUNED_WITHIN:
        yield warning(f"Expired data was last removed {_words(moment - pruned_at)} ago.")


def check_jobs(settings: Settings) -> Iterator[Finding]:
    """Check for jobs of the worker that failed within the last hour."""
    del settings
    moment = now()
    for job in list_failed_jobs(session=db.session()):
        if moment - job.failed_at < FAILURE_SHOWN_FOR:
            ago = _words(moment - job.failed_at)
            yield warning(f"Job {job.name} failed {ago} ago ({job.reason}). See the worker's log.")
    yield ok("No job of the worker failed within the last hour.")


def check_queue(settings: Settings) -> Iterator[Finding]:
    """Check for pages that have been waiting too long."""
    del settings
    moment = now()
    for each in states_by_type(session=db.session(), now=moment):
        waited = moment - each.oldest_at if each.oldest_at else timedelta(0)
        if waited > _PAGES_WAIT:
            yield warning(f"Pages by {each.type.name} have been waiting for {_words(waited)}.")
        if each.failing:
            failing = pluralize(each.failing, "contact")
            yield warning(f"Messages to {failing} of type {each.type.name} are failing.")
    overdue = count_overdue(session=db.session(), now=moment)
    if overdue:
        yield warning(f"{pluralize(overdue, 'page')} should have been sent over a minute ago.")
    for follower, since in oldest_changes(session=db.session()).items():
        if moment - since > _PAGES_WAIT:
            lateness = _words(moment - since)
            effect = _FOLLOWERS[follower]
            yield warning(f"Alert changes have been waiting for {lateness}, so {effect}.")
    due_at = oldest_due_step(session=db.session())
    if due_at is not None and moment - due_at > _PAGES_WAIT:
        lateness = _words(moment - due_at)
        yield warning(f"Escalation steps have been due for {lateness}. The worker is late.")
    yield ok("No page has been waiting too long.")


def check_mail(settings: Settings) -> Iterator[Finding]:
    """Sign in to the mail server, and check for email that has been waiting too long."""
    if not settings.mail_url:
        yield warning("MAIL_URL is not set, so no email is sent.")
        return
    server = mail_server(settings.mail_url, settings.trusted_ca_file)
    try:
        with Mailer(server, sender_of(settings)) as mailer:
            mailer.check()
    except MailError as error:
        yield failed(f"{server.host}:{server.port} cannot be used: {error}.")
    else:
        yield ok(f"{server.host}:{server.port} is reachable. Try `gatebell mail test ADDRESS`.")
    yield from _waiting_mail(db.session())


def _waiting_mail(session: Session) -> Iterator[Finding]:
    state, moment = queue_state(session=session), now()
    if state.oldest_at and moment - state.oldest_at > _MAIL_WAITS:
        waited = _words(moment - state.oldest_at)
        queued = pluralize(state.waiting, "email")
        yield warning(f"The queue has {queued}. The oldest has been waiting for {waited}.")


def check_hosts(settings: Settings) -> Iterator[Finding]:
    """Check whether all hosts of this database run the same release."""
    del settings
    present = list_present(session=db.session(), now=now())
    revisions = {each.revision for each in present}
    if not present:
        yield warning("No host reports to this database, so the service is not running.")
    elif len(revisions) > 1:
        yield warning(
            f"Hosts run releases with different migrations: {', '.join(sorted(revisions))}."
        )
    else:
        yield ok(f"Running programs: {', '.join(each.name for each in present)}.")


def check_separate_counts(settings: Settings) -> Iterator[Finding]:
    """Check whether several hosts count rate limits separately."""
    if not settings.counts_on_host:
        return
    present = list_present(session=db.session(), now=now())
    places = [each.place for each in present if each.program == "web"]
    if len(places) > 1:
        yield warning(
            f"{', '.join(places)} count rate limits separately, so clients can send {len(places)} "
            "times as many requests. Set RATELIMIT_STORAGE_URI."
        )
    else:
        yield ok("Rate limits are counted on this host, and no other host reports.")


def _words(length: timedelta) -> str:
    return duration(length.total_seconds())


def check_proxy(settings: Settings) -> Iterator[Finding]:
    """Request BASE_URL with a forged X-Forwarded-For and check how the service interprets it."""
    url = f"{settings.base_url}/healthz"
    context = outgoing_tls_context(settings.trusted_ca_file)
    headers = {HEADER: new_probe(), "X-Forwarded-For": FORGED, "User-Agent": "gatebell doctor"}
    with PoolManager(ssl_context=context, timeout=Timeout(_SECONDS), retries=False) as client:
        try:
            answer = client.request("GET", url, headers=headers, redirect=False)
        except HTTPError as error:
            yield failed(f"{url} cannot be reached from this host: {_reason(error)}.")
            return
    if answer.status != _OK:
        yield failed(f"{url} returns the status {answer.status} instead of {_OK}.")
        return
    yield judge_headers(answer.data, trusted=settings.trusted_proxies)


def _reason(error: HTTPError) -> str:
    text = str(getattr(error, "reason", None) or error)
    return text.rpartition(": ")[2].rstrip(".") or type(error).__name__


def judge_headers(body: bytes, *, trusted: int) -> Finding:
    """Evaluate the response of /healthz to a request with a forged X-Forwarded-For."""
    try:
        said = json.loads(body)
        client, forwarded = str(said["client"]), str(said["forwarded_for"])
    except (ValueError, KeyError, TypeError):
        return warning("Another service responds at BASE_URL, or it has another SECRET_KEY.")
    if client == FORGED:
        return failed(
            f"TRUSTED_PROXIES is {trusted}, but clients can choose their own IP address. The proxy "
            "does not append to X-Forwarded-For, or there are fewer proxies."
        )
    hops = len([each for each in forwarded.split(",") if each.strip() not in {"", FORGED}])
    named = pluralize(hops, "address", "addresses")
    summary = (
        f"X-Forwarded-For has {named}, but TRUSTED_PROXIES is {trusted}, so all clients seem to "
        f"have the address {client}"
    )
    if hops > trusted:
        return failed(f"{summary}. Set TRUSTED_PROXIES={hops}.")
    if hops < trusted:
        return failed(
            f"{summary}, and failed sign-ins of one client block all clients. "
            f"Set TRUSTED_PROXIES={hops}, unless clients use more proxies than this host does."
        )
    through = pluralize(hops, "proxy", "proxies")
    return ok(f"BASE_URL is reachable through {through}. The address of this host is {client}.")


def check_database(settings: Settings) -> Iterator[Finding]:
    """Check the connection to the database, and write a row."""
    with reasons_in_a_sentence():
        pooler = find_pooler(settings)
        wrong = session_problem(settings, pooler)
    if wrong:
        yield failed(wrong)
        return
    with db.engine.connect() as connection:
        numbers = connection.dialect.server_version_info or ()
        version = ".".join(str(each) for each in numbers)
    through = "" if pooler is Pooler.NONE else f" through a pooler of {pooler.value}"
    name = f"{_KINDS[db.engine.dialect.name]} {version}{through}"
    problem = services().write_probe.problem(db.engine, now=now())
    said = f"{name} is reachable and accepts writes."
    yield failed(f"{name} does not accept writes: {problem}.") if problem else ok(said)


def check_migrations(settings: Settings) -> Iterator[Finding]:
    """Compare the schema of the database with this code."""
    del settings
    with db.engine.connect() as connection:
        state, wanted = schema_state(connection), newest_known_revision()
    yield {
        SchemaState.RIGHT: ok(f"The database is at the newest migration, {wanted}."),
        SchemaState.NEWER: warning(
            f"A newer release has migrated the database beyond migration {wanted}."
        ),
        SchemaState.OLDER: failed(
            f"The database is older than migration {wanted}. Run `make migrate`."
        ),
        SchemaState.TOO_NEW: failed("A newer release has migrated the database. Use that release."),
        SchemaState.TOO_OLD: failed(f"Upgrade the database with release {FIRST_RELEASE} first."),
    }[state]


def check_clock(settings: Settings) -> Iterator[Finding]:
    """Compare this host's clock with the database's clock and with stored times."""
    session, moment = db.session(), now()
    for remark in (ahead_remark, correction_remark):
        if said := remark(session=session, now=moment):
            yield warning(said)
    if settings.uses_sqlite:
        yield ok("SQLite uses the clock of this host.")
        return
    lead = _shortest_lead(session.connection())
    if is_too_much(lead):
        yield failed(f"{in_words(lead)} Synchronize both clocks, for example with chrony.")
    else:
        yield ok(f"The clock differs from the database's clock by {abs(lead) / 1000:.1f} s.")


def _shortest_lead(connection: Connection) -> int:
    """Return the clock difference with the smallest absolute value out of three measurements."""
    connection.execute(text("SELECT 1"))
    leads = (clock_lead_ms(connection, clock=services().clock) for _ in range(3))
    return min((each for each in leads if each is not None), key=abs)


def check_memory(settings: Settings) -> Iterator[Finding]:
    """Compare the memory of this host with the needs of its settings."""
    said, limit = memory_warning(settings), memory_limit_mib()
    if said:
        yield warning(said)
    else:
        available = f"{limit} MiB" if limit else "an unknown amount"
        yield ok(f"The service needs {needed_mib(settings)} MiB of memory, and has {available}.")


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Check for free space where the service writes."""
    seen: set[int] = set()
    for place in (settings.instance_path, settings.repositories_path):
        there = _existing(place)
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield _room(there)


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _room(path: Path) -> Finding:
    files = os.statvfs(path)
    # Some file systems do not count files.
    if files.f_files and files.f_favail < _FEW_FILES:
        return failed(f"Only {files.f_favail} more files can be created on the disk of {path}.")
    usage = shutil.disk_usage(path)
    free, total = (f"{size / _GIB:.1f} GiB" for size in (usage.free, usage.total))
    sentence = f"{free} of {total} is free at {path}."
    if usage.free < _TOO_LITTLE:
        return failed(sentence)
    return warning(sentence) if usage.free < _LITTLE else ok(sentence)


def check_backups(settings: Settings) -> Iterator[Finding]:
    """Check whether pg_dump is new enough for the server, which it needs for a backup."""
    if settings.uses_sqlite:
        yield ok("`gatebell backup` needs no other program for SQLite.")
        return
    with db.engine.connect() as connection:
        server = int((connection.dialect.server_version_info or (0,))[0])
    found = version_of("pg_dump")
    with reasons_in_a_sentence():
        is_shared = find_pooler(settings) is Pooler.OF_TRANSACTIONS
    if is_shared:
        yield warning("`gatebell backup` needs an address of Postgres itself, without the pooler.")
    elif found is None:
        yield warning("pg_dump is not in PATH. `gatebell backup` needs it in PATH or in --pg-dump.")
    elif found < server:
        yield warning(
            f"pg_dump {found} is older than Postgres {server}. `gatebell backup` needs a newer one."
        )
    else:
        yield ok(f"pg_dump {found} can back up Postgres {server}.")


def check_last_backup(settings: Settings) -> Iterator[Finding]:
    """Check that the last backup succeeded and is not too old."""
    del settings
    state, moment = backup_state(session=db.session()), now()
    if state.has_failed and state.failed_at:
        ago = _words(moment - state.failed_at)
        yield failed(f"The last backup failed {ago} ago: {state.reason}")
    if state.succeeded_at is None:
        yield warning("This database has never been backed up with `gatebell backup`.")
    elif state.is_overdue(moment):
        yield warning(f"The last backup was made {_words(moment - state.succeeded_at)} ago.")
    else:
        size = (state.bytes or 0) / _MIB
        ago = _words(moment - state.succeeded_at)
        yield ok(f"The last backup was made {ago} ago ({size:,.1f} MiB).")


def check_git(settings: Settings) -> Iterator[Finding]:
    """Check for a Git version that can serve repositories."""
    del settings
    problem = git().problem()
    if problem:
        yield warning(f"Git is {problem}, so this host cannot serve repositories.")
    else:
        yield ok("Git is installed.")


_CHECKS = (
    Check("version", check_version, needs_database=False),
    Check("python", check_python, needs_database=False),
    Check("database", check_database),
    Check("migrations", check_migrations),
    Check("keys", check_keys),
    Check("settings", check_settings),
    Check("clock", check_clock),
    Check("disk", check_disk, needs_database=False),
    Check("memory", check_memory, needs_database=False),
    Check("worker", check_worker),
    Check("jobs", check_jobs),
    Check("hosts", check_hosts),
    Check("pages", check_queue),
    Check("mail", check_mail),
    Check("proxy", check_proxy, needs_database=False),
    Check("certificate", check_certificate, needs_database=False),
    Check("rate limits", check_counters, needs_database=False),
    Check("rate limits", check_separate_counts),
    Check("backups", check_backups),
    Check("backups", check_last_backup),
    Check("git", check_git, needs_database=False),
)
