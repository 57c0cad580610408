"""Command that checks an installation for problems."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import click
from flask.cli import ScriptInfo
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from domain.accounts.passwords import FIRST_ADMINISTRATOR_USERNAME, has_initial_password
from domain.alerts.change_feed import Follower, find_oldest_change_times
from domain.core.clock import format_message_time
from domain.core.hosts import (
    MAX_HOST_REPORT_AGE,
    PRUNE_JOB,
    WORKER_HEARTBEAT_JOB,
    find_last_job_run,
    list_running_hosts,
)
from domain.core.job_results import FAILURE_DISPLAY_TIME, list_failed_jobs
from domain.core.secret_keys import find_missing_fingerprints
from domain.core.tls import build_outgoing_tls_context
from domain.delivery.mail.outbox import get_mail_queue_state
from domain.delivery.mail.smtp import Mailer, MailError
from domain.housekeeping.clock_corrections import describe_future_times, describe_recent_correction
from domain.housekeeping.secret_key_rotation import get_secret_key_rotation
from domain.paging.escalations.lifecycle import find_earliest_due_time
from domain.paging.notifications.message_queue_state import (
    count_overdue_pages,
    find_contact_type_states,
)
from web.admin.security_warnings import list_security_warnings
from web.admin.settings import get_settings_in_transaction
from web.commands.doctor.host_checks import (
    check_backup_program,
    check_disk,
    check_git,
    check_last_backup,
    check_memory,
)
from web.commands.doctor.results import (
    CheckResult,
    CheckState,
    failed,
    format_duration,
    ok,
    warning,
)
from web.commands.execution import describe_known_error
from web.commands.output import print_result
from web.database.clock_offset import (
    describe_clock_offset,
    is_clock_offset_harmful,
    measure_clock_offset_ms,
)
from web.database.schema import (
    FIRST_RELEASE,
    SchemaState,
    get_newest_known_revision,
    get_schema_state,
)
from web.database.sessions import Pooler, find_pooler, find_session_problem
from web.database.startup_checks import convert_database_errors
from web.database.startup_errors import CannotStartError
from web.extensions import db
from web.http.transactions import roll_back_session
from web.interpreter import describe_interpreter, is_interpreter_optimized
from web.outgoing.mail_server import build_mail_server, build_sender
from web.pages.templating import pluralize
from web.sealing.sealed_values import DOCTOR_HEADER, create_proxy_probe
from web.server.tls import CertificateFilesError, load_certificate
from web.services import get_current_time, get_services
from web.settings.environment import Settings, SettingsError, list_ignored_variables
from web.version import get_running_build

_PERMISSIONS_OF_OTHERS = 0o077
#: Longest time between reports from a worker, which reports every minute unless it is very busy.
_MAX_REPORT_AGE = timedelta(seconds=100)
#: Longest time since the last pruning: two intervals, plus the duration of a run.
_MAX_PRUNE_AGE = timedelta(minutes=30)
#: Waiting times of pages and email that cause a warning. Pages and email are normally sent within
#: seconds or minutes.
_MAX_PAGE_WAIT, _MAX_MAIL_WAIT = timedelta(minutes=2), timedelta(minutes=15)
#: Consequences of delayed alert changes, by follower.
_FOLLOWER_CONSEQUENCES = {
    Follower.ESCALATIONS: "nobody is paged for them",
    Follower.INCIDENTS: "no rule opens incidents for them",
    Follower.WEBHOOKS: "no webhook receives them",
}
_PROXY_TIMEOUT_SECONDS = 10.0
#: IP address for documentation (RFC 5737), which no client has.
FORGED_ADDRESS = "192.0.2.1"
_HTTP_OK = 200
_PYTHON_REMEDY = (
    "Install an optimized Python (docs/deployment.md#choose-a-python), remove .venv and start "
    "again."
)
_DATABASE_NAMES = {"postgresql": "Postgres", "sqlite": "SQLite"}


class DoctorCheck(NamedTuple):
    """A check, with its name, its function, and whether it needs a reachable database."""

    name: str
    check: Callable[[Settings], Iterator[CheckResult]]
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
        _print_results([("settings", failed(str(error)))])
        return
    with app.app_context():
        found = list(_run_checks(get_services().live_settings.environment_settings))
        db.session.remove()
    _print_results(found)


def _run_checks(settings: Settings) -> Iterator[tuple[str, CheckResult]]:
    is_away = False
    for name, check, needs_database in _DOCTOR_CHECKS:
        if is_away and needs_database:
            continue
        found = list(_run_check(check, settings))
        is_away = is_away or (name in {"database", "migrations"} and _has_failed(found))
        # Positive results are shown only if there are no other results.
        shown = [each for each in found if each.state is not CheckState.OK] or found
        yield from ((name, each) for each in shown)


def _has_failed(check_results: list[CheckResult]) -> bool:
    return any(each.state is CheckState.FAILED for each in check_results)


def _run_check(
    check: Callable[[Settings], Iterator[CheckResult]], settings: Settings
) -> Iterator[CheckResult]:
    """Run a check and yield its results, or a failure if the check itself fails."""
    try:
        yield from check(settings)
    except (SQLAlchemyError, CannotStartError, OSError) as error:
        yield failed(describe_known_error(error) or f"{type(error).__name__}: {error}")
    finally:
        # The next check may need another connection, and a pooler may have only one.
        roll_back_session()


def _print_results(found: list[tuple[str, CheckResult]]) -> None:
    worst = max((each.state for _, each in found), key=[*CheckState].index)
    rows = [{"check": name, "state": each.state, "message": each.message} for name, each in found]
    print_result({"state": worst, "checks": rows})
    sys.exit(1 if worst is CheckState.FAILED else 0)


def check_settings(settings: Settings) -> Iterator[CheckResult]:
    """Check for misspelled environment variables and for settings that weaken security."""
    for sentence in list_ignored_variables():
        yield warning(sentence)
    for risk in list_security_warnings(get_settings_in_transaction(session=db.session())):
        yield warning(f"{risk.setting.upper()} {risk.words}")
    if has_initial_password(FIRST_ADMINISTRATOR_USERNAME, settings.instance_path):
        yield warning(f"The generated password of {FIRST_ADMINISTRATOR_USERNAME} is still in use.")
    yield ok("No variable looks misspelled, and no setting weakens security.")


def check_keys(settings: Settings) -> Iterator[CheckResult]:
    """Check whether this host has the keys that encrypt the data in the database."""
    session, keyring = db.session(), get_services().keyring
    missing = find_missing_fingerprints(keyring, session=session)
    if missing:
        yield failed(
            "SECRET_KEY and SECRET_KEY_FALLBACKS lack the keys with these fingerprints: "
            f"{', '.join(missing)}."
        )
        return
    unreadable = sum(
        get_secret_key_rotation(
            keyring, session=session, now=get_current_time()
        ).unreadable.values()
    )
    if unreadable:
        yield failed(
            f"{pluralize(unreadable, 'stored key')} cannot be decrypted. "
            "See `gatebell secrets status`."
        )
    for name in ("secret_key", "gatebell.db"):
        yield from _check_file_mode(settings.instance_path / name)
    yield ok("SECRET_KEY matches the database.")


def _check_file_mode(file: Path) -> Iterator[CheckResult]:
    # If other users cannot open a directory, the files in it are always private.
    if file.exists() and file.stat().st_mode & file.parent.stat().st_mode & _PERMISSIONS_OF_OTHERS:
        yield warning(f"Other users can read {file}. Run `chmod 600 {file}`.")


def check_certificate(settings: Settings) -> Iterator[CheckResult]:
    """Check when the service's own TLS certificate expires."""
    try:
        certificate = load_certificate(settings)
    except CertificateFilesError as error:
        yield failed(str(error))
        return
    if certificate is None:
        yield ok("TLS_CERTIFICATE is not set; a proxy can provide TLS.")
        return
    for said in (
        certificate.build_expiry_warning(),
        certificate.build_host_warning(settings.base_url),
    ):
        if said:
            yield warning(said)
    yield ok(f"The certificate is valid until {format_message_time(certificate.expires_at)}.")


def check_rate_limit_store(settings: Settings) -> Iterator[CheckResult]:
    """Check whether the store that web processes share for rate limits is reachable."""
    if settings.counts_rate_limits_per_host:
        return
    from limits.storage import storage_from_string  # noqa: PLC0415 - few installations need it

    from web.rate_limit_storage import build_storage_configuration  # noqa: PLC0415

    made = build_storage_configuration(settings.ratelimit_storage_uri, settings.trusted_ca_file)
    storage = storage_from_string(
        made["RATELIMIT_STORAGE_URI"], **made.get("RATELIMIT_STORAGE_OPTIONS", {})
    )
    if storage.check():
        yield ok("The rate limit store is reachable.")
    else:
        yield failed("RATELIMIT_STORAGE_URI is unreachable, so each web process counts separately.")


def check_version(settings: Settings) -> Iterator[CheckResult]:
    """Report the version of Gatebell."""
    del settings
    yield ok(f"Gatebell {get_running_build()}.")


def check_python(settings: Settings) -> Iterator[CheckResult]:
    """Check whether Python was built with optimization."""
    del settings
    said = f"Python {describe_interpreter()}"
    if is_interpreter_optimized():
        yield ok(f"{said}.")
    else:
        yield warning(
            f"{said}, so the service needs up to a sixth more processor time. {_PYTHON_REMEDY}"
        )


def check_worker(settings: Settings) -> Iterator[CheckResult]:
    """Check when a background worker last reported, and when expired data was last removed."""
    del settings
    session, moment = db.session(), get_current_time()
    seen_at = find_last_job_run(WORKER_HEARTBEAT_JOB, session=session)
    if seen_at is None:
        yield failed("No background worker has ever reported, so nobody is paged.")
        return
    silence = moment - seen_at
    if silence < -MAX_HOST_REPORT_AGE:
        # A running worker corrects future times within a minute.
        yield failed("The latest report of the background worker has a time in the future.")
        return
    if silence > MAX_HOST_REPORT_AGE:
        yield failed(
            f"No background worker has reported for {format_duration(silence)}, so nobody is paged."
        )
        return
    if silence > _MAX_REPORT_AGE:
        yield warning(
            f"The background worker has not reported for {format_duration(silence)}. It may hang."
        )
    else:
        yield ok("A background worker is running.")
    pruned_at = find_last_job_run(PRUNE_JOB, session=session)
    if pruned_at is not None and moment - pruned_at > _MAX_PRUNE_AGE:
        yield warning(f"Expired data was last removed {format_duration(moment - pruned_at)} ago.")


def check_jobs(settings: Settings) -> Iterator[CheckResult]:
    """Check for worker jobs that failed within the last hour."""
    del settings
    moment = get_current_time()
    for job in list_failed_jobs(session=db.session()):
        if moment - job.failed_at < FAILURE_DISPLAY_TIME:
            ago = format_duration(moment - job.failed_at)
            yield warning(f"Job {job.name} failed {ago} ago ({job.reason}). See the worker's log.")
    yield ok("No job of the worker failed within the last hour.")


def check_paging_backlog(settings: Settings) -> Iterator[CheckResult]:
    """Check for delayed pages, alert changes and escalation steps, and for failing contacts."""
    del settings
    moment = get_current_time()
    for each in find_contact_type_states(session=db.session(), now=moment):
        waited = moment - each.oldest_at if each.oldest_at else timedelta(0)
        if waited > _MAX_PAGE_WAIT:
            yield warning(
                f"Pages by {each.type.name} have been waiting for {format_duration(waited)}."
            )
        if each.failing:
            failing = pluralize(each.failing, "contact")
            yield warning(f"Messages to {failing} of type {each.type.name} are failing.")
    overdue = count_overdue_pages(session=db.session(), now=moment)
    if overdue:
        yield warning(f"{pluralize(overdue, 'page')} should have been sent over a minute ago.")
    for follower, since in find_oldest_change_times(session=db.session()).items():
        if moment - since > _MAX_PAGE_WAIT:
            lateness = format_duration(moment - since)
            effect = _FOLLOWER_CONSEQUENCES[follower]
            yield warning(f"Alert changes have been waiting for {lateness}, so {effect}.")
    due_at = find_earliest_due_time(session=db.session())
    if due_at is not None and moment - due_at > _MAX_PAGE_WAIT:
        lateness = format_duration(moment - due_at)
        yield warning(f"Escalation steps have been due for {lateness}. The worker is late.")
    yield ok("No page has been waiting too long.")


def check_mail(settings: Settings) -> Iterator[CheckResult]:
    """Sign in to the mail server, and check for email that has been waiting too long."""
    if not settings.mail_url:
        yield warning("MAIL_URL is not set, so no email is sent.")
        return
    server = build_mail_server(settings.mail_url, settings.trusted_ca_file)
    try:
        with Mailer(server, build_sender(settings)) as mailer:
            mailer.check_connection()
    except MailError as error:
        yield failed(f"{server.host}:{server.port} cannot be used: {error}.")
    else:
        yield ok(f"{server.host}:{server.port} is reachable. Try `gatebell mail test ADDRESS`.")
    yield from _check_waiting_mail(db.session())


def _check_waiting_mail(session: Session) -> Iterator[CheckResult]:
    moment = get_current_time()
    state = get_mail_queue_state(session=session, now=moment)
    if state.oldest_at and moment - state.oldest_at > _MAX_MAIL_WAIT:
        waited = format_duration(moment - state.oldest_at)
        queued = pluralize(state.waiting, "email")
        yield warning(f"The queue has {queued}. The oldest has been waiting for {waited}.")


def check_hosts(settings: Settings) -> Iterator[CheckResult]:
    """Check whether all hosts of this database run the same release."""
    del settings
    present = list_running_hosts(session=db.session(), now=get_current_time())
    revisions = {each.revision for each in present}
    if not present:
        yield warning("No host reports to this database, so the service is not running.")
    elif len(revisions) > 1:
        yield warning(
            f"Hosts run releases with different migrations: {', '.join(sorted(revisions))}."
        )
    else:
        yield ok(f"Running programs: {', '.join(each.name for each in present)}.")


def check_separate_rate_limits(settings: Settings) -> Iterator[CheckResult]:
    """Check whether several hosts count rate limits separately."""
    if not settings.counts_rate_limits_per_host:
        return
    present = list_running_hosts(session=db.session(), now=get_current_time())
    places = [each.address for each in present if each.process_kind == "web"]
    if len(places) > 1:
        yield warning(
            f"{', '.join(places)} count rate limits separately, so clients can send {len(places)} "
            "times as many requests. Set RATELIMIT_STORAGE_URI."
        )
    else:
        yield ok("Rate limits are counted on this host, and no other host reports.")


def check_proxy(settings: Settings) -> Iterator[CheckResult]:
    """Request BASE_URL with a forged X-Forwarded-For and check how the service interprets it."""
    url = f"{settings.base_url}/healthz"
    context = build_outgoing_tls_context(settings.trusted_ca_file)
    headers = {
        DOCTOR_HEADER: create_proxy_probe(),
        "X-Forwarded-For": FORGED_ADDRESS,
        "User-Agent": "gatebell doctor",
    }
    with PoolManager(
        ssl_context=context, timeout=Timeout(_PROXY_TIMEOUT_SECONDS), retries=False
    ) as client:
        try:
            answer = client.request("GET", url, headers=headers, redirect=False)
        except HTTPError as error:
            yield failed(f"{url} cannot be reached from this host: {_format_http_error(error)}.")
            return
    if answer.status != _HTTP_OK:
        yield failed(f"{url} returns the status {answer.status} instead of {_HTTP_OK}.")
        return
    yield evaluate_forwarded_headers(answer.data, trusted=settings.trusted_proxies)


def _format_http_error(error: HTTPError) -> str:
    text = str(getattr(error, "reason", None) or error)
    return text.rpartition(": ")[2].rstrip(".") or type(error).__name__


def evaluate_forwarded_headers(body: bytes, *, trusted: int) -> CheckResult:
    """Evaluate the response from /healthz to a request with a forged X-Forwarded-For."""
    try:
        said = json.loads(body)
        client, forwarded = str(said["client"]), str(said["forwarded_for"])
    except (ValueError, KeyError, TypeError):
        return warning("Another service responds at BASE_URL, or it has another SECRET_KEY.")
    if client == FORGED_ADDRESS:
        return failed(
            f"TRUSTED_PROXIES is {trusted}, but clients can choose their own IP address. The proxy "
            "does not append to X-Forwarded-For, or there are fewer proxies."
        )
    hops = len([each for each in forwarded.split(",") if each.strip() not in {"", FORGED_ADDRESS}])
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


def check_database(settings: Settings) -> Iterator[CheckResult]:
    """Check that the database is reachable and accepts writes."""
    with convert_database_errors():
        pooler = find_pooler(settings)
        wrong = find_session_problem(settings, pooler)
    if wrong:
        yield failed(wrong)
        return
    with db.engine.connect() as connection:
        numbers = connection.dialect.server_version_info or ()
        version = ".".join(str(each) for each in numbers)
    through = "" if pooler is Pooler.NONE else f" through a pooler of {pooler.value}"
    name = f"{_DATABASE_NAMES[db.engine.dialect.name]} {version}{through}"
    problem = get_services().write_probe.find_problem(db.engine, now=get_current_time())
    said = f"{name} is reachable and accepts writes."
    yield failed(f"{name} does not accept writes: {problem}.") if problem else ok(said)


def check_migrations(settings: Settings) -> Iterator[CheckResult]:
    """Compare the migration of the database with the newest migration of this code."""
    del settings
    with db.engine.connect() as connection:
        state, wanted = get_schema_state(connection), get_newest_known_revision()
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


def check_clock(settings: Settings) -> Iterator[CheckResult]:
    """Compare this host's clock with the database's clock and with stored times."""
    session, moment = db.session(), get_current_time()
    for remark in (describe_future_times, describe_recent_correction):
        if said := remark(session=session, now=moment):
            yield warning(said)
    if settings.uses_sqlite:
        yield ok("SQLite uses the clock of this host.")
        return
    lead = _measure_clock_offset(session.connection())
    if is_clock_offset_harmful(lead):
        yield failed(
            f"{describe_clock_offset(lead)} Synchronize both clocks, for example with chrony."
        )
    else:
        yield ok(f"The clock differs from the database's clock by {abs(lead) / 1000:.1f} s.")


def _measure_clock_offset(connection: Connection) -> int:
    """Measure the clock difference three times and return the value closest to zero."""
    connection.execute(text("SELECT 1"))
    leads = (measure_clock_offset_ms(connection, clock=get_services().clock) for _ in range(3))
    return min((each for each in leads if each is not None), key=abs)


_DOCTOR_CHECKS = (
    DoctorCheck("version", check_version, needs_database=False),
    DoctorCheck("python", check_python, needs_database=False),
    DoctorCheck("database", check_database),
    DoctorCheck("migrations", check_migrations),
    DoctorCheck("keys", check_keys),
    DoctorCheck("settings", check_settings),
    DoctorCheck("clock", check_clock),
    DoctorCheck("disk", check_disk, needs_database=False),
    DoctorCheck("memory", check_memory, needs_database=False),
    DoctorCheck("worker", check_worker),
    DoctorCheck("jobs", check_jobs),
    DoctorCheck("hosts", check_hosts),
    DoctorCheck("pages", check_paging_backlog),
    DoctorCheck("mail", check_mail),
    DoctorCheck("proxy", check_proxy, needs_database=False),
    DoctorCheck("certificate", check_certificate, needs_database=False),
    DoctorCheck("rate limits", check_rate_limit_store, needs_database=False),
    DoctorCheck("rate limits", check_separate_rate_limits),
    DoctorCheck("pg_dump", check_backup_program),
    DoctorCheck("backups", check_last_backup),
    DoctorCheck("git", check_git, needs_database=False),
)
