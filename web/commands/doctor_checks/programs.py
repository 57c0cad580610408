"""Checks of the background worker, its queues, other hosts, and mail."""

from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy.orm import Session

from domain.mail.queue_state import queue_state
from domain.mail.smtp import Mailer, MailError
from domain.notifications.queue_state import count_overdue, states_by_type
from domain.programs.hosts import SILENCE, list_present
from domain.programs.job_turns import PRUNE, WORKER_HEARTBEAT, last_turn
from web.build import running_build
from web.commands.doctor_checks.findings import Finding, failed, ok, warning
from web.extensions import db
from web.jobs.mail import mail_server, sender_of
from web.limit_storage import counts_on_host
from web.pages.filters import duration
from web.services import now
from web.settings.reader import Settings

#: A worker reports each minute, unless it is very busy.
_REPORTS_WITHIN = timedelta(seconds=100)
#: Two periods of pruning, and some time for it to end.
_PRUNED_WITHIN = timedelta(minutes=30)
#: Pages and e-mail usually leave within seconds and minutes.
_PAGES_WAIT, _MAIL_WAITS = timedelta(minutes=2), timedelta(minutes=15)


def check_version(settings: Settings) -> Iterator[Finding]:
    """Say which version this is."""
    del settings
    yield ok(f"Gatebell {running_build()}.")


def check_worker(settings: Settings) -> Iterator[Finding]:
    """Look when a background worker was last heard of, and when it pruned."""
    del settings
    session, moment = db.session(), now()
    seen_at = last_turn(WORKER_HEARTBEAT, session=session)
    if seen_at is None:
        yield failed("No background worker has ever reported: nobody is paged.")
        return
    silence = moment - seen_at
    if silence > SILENCE:
        yield failed(f"No background worker has reported for {_words(silence)}: nobody is paged.")
        return
    if silence > _REPORTS_WITHIN:
        yield warning(f"No background worker has reported for {_words(silence)}: it may hang.")
    else:
        yield ok("A background worker is running.")
    pruned_at = last_turn(PRUNE, session=session)
    if pruned_at is not None and moment - pruned_at > _PRUNED_WITHIN:
        yield warning(f"Expired data was last removed {_words(moment - pruned_at)} ago.")


def check_queue(settings: Settings) -> Iterator[Finding]:
    """Look for pages that wait too long."""
    del settings
    moment = now()
    for each in states_by_type(session=db.session()):
        waited = moment - each.oldest_at if each.oldest_at else timedelta(0)
        if waited > _PAGES_WAIT:
            yield warning(f"Pages by {each.type.name} have waited for {_words(waited)}.")
        if each.failing:
            yield warning(f"{each.failing} contacts of type {each.type.name} currently fail.")
    overdue = count_overdue(session=db.session(), now=moment)
    if overdue:
        yield warning(f"{overdue} pages should have been sent more than a minute ago.")
    yield ok("No page has been waiting too long.")


def check_mail(settings: Settings) -> Iterator[Finding]:
    """Sign in to the mail server, and look for e-mail that waits too long."""
    if not settings.mail_url:
        yield warning("MAIL_URL is not set: no e-mail is sent.")
        return
    server = mail_server(settings.mail_url, settings.trusted_ca_file)
    try:
        with Mailer(server, sender_of(settings)) as mailer:
            mailer.check()
    except MailError as error:
        yield failed(f"{server.host}:{server.port} cannot be used: {error}.")
    else:
        yield ok(f"{server.host}:{server.port} answers; `gatebell mail test` sends a message.")
    yield from _waiting_mail(db.session())


def _waiting_mail(session: Session) -> Iterator[Finding]:
    state, moment = queue_state(session=session), now()
    if state.oldest_at and moment - state.oldest_at > _MAIL_WAITS:
        waited = _words(moment - state.oldest_at)
        yield warning(f"{state.waiting} messages are waiting, the oldest for {waited}.")


def check_hosts(settings: Settings) -> Iterator[Finding]:
    """Compare the hosts that work on this database."""
    del settings
    present = list_present(session=db.session(), now=now())
    revisions = {each.revision for each in present}
    if not present:
        yield warning("No host reports to this database: the service does not run.")
    elif len(revisions) > 1:
        yield warning(f"Hosts run different releases: {', '.join(sorted(revisions))}.")
    else:
        yield ok(f"Programs that report: {', '.join(each.name for each in present)}.")


def check_separate_counts(settings: Settings) -> Iterator[Finding]:
    """Look whether several hosts count rate limits, each for itself."""
    if not counts_on_host(settings.ratelimit_storage_uri):
        return
    present = list_present(session=db.session(), now=now())
    places = [each.place for each in present if each.program == "web"]
    if len(places) > 1:
        yield warning(
            f"{', '.join(places)} count rate limits separately, so clients may do {len(places)} "
            "times as much: set RATELIMIT_STORAGE_URI."
        )
    else:
        yield ok("Rate limits are counted on this host, and no other one reports.")


def _words(length: timedelta) -> str:
    return duration(length.total_seconds())
