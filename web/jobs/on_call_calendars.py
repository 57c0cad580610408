"""Jobs that read calendars with absences and holidays, and queue notices about conflicts."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import cast

from sqlalchemy.orm import Session

from domain.access.actor import AccessMethod, Actor, PolicyLookup, UnitOfWork
from domain.core.clock import Clock, read_system_clock
from domain.core.database.locks import commit_to_release_locks
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_fraction
from domain.delivery.outgoing.urls import OutgoingUrl
from domain.paging.on_call.absences.calendar_files import MAX_CALENDAR_BYTES
from domain.paging.on_call.absences.conflicts import queue_conflict_notices
from domain.paging.on_call.absences.imported_calendars import (
    FetchedFile,
    move_floating_absences,
    refresh_next_calendar,
)
from web.database.engine import use_engine
from web.outgoing.client import OutgoingClient
from web.settings.environment import Settings
from web.settings.stored_settings import read_current_settings

#: Seconds after which a run stops. The next run reads the remaining calendars.
_MAX_RUN_SECONDS = 50.0
#: Number of calendars that are requested at the same time, so that slow servers delay only some.
_READERS = 4


def refresh_calendars(settings: Settings, *, clock: Clock = read_system_clock) -> None:
    """Read all calendars that are due, and move the absences of users who changed time zones."""
    ends = monotonic() + _MAX_RUN_SECONDS
    with use_engine(settings) as engine:
        with Session(engine) as session:
            current = read_current_settings(settings, session=session)
            move_floating_absences(session=session)
        keyring = Keyring(current.secret_key, *current.secret_key_fallbacks)

        def refresh_due_calendars(_number: int) -> None:
            fetch = partial(_fetch_calendar, OutgoingClient.from_settings(current))
            with Session(engine) as session:
                while monotonic() < ends and refresh_next_calendar(
                    fetch,
                    session=session,
                    keyring=keyring,
                    share=generate_random_fraction(),
                    now=clock(),
                ):
                    pass

        with ThreadPoolExecutor(_READERS) as pool:
            # The list raises the errors of the readers.
            list(pool.map(refresh_due_calendars, range(_READERS)))


def _fetch_calendar(
    client: OutgoingClient, url: OutgoingUrl, headers: dict[str, str]
) -> FetchedFile:
    accepted = {"Accept": "text/calendar, */*;q=0.1"}
    answer = client.fetch_file(url, headers | accepted, max_bytes=MAX_CALENDAR_BYTES)
    return FetchedFile(answer.status, answer.beginning, answer.etag, answer.last_modified)


def queue_conflict_mail(settings: Settings, *, clock: Clock = read_system_clock) -> None:
    """Queue notices about conflicts between shifts and absences, if mail is configured."""
    if not settings.mail_url:
        return
    with use_engine(settings) as engine, Session(engine) as session:
        current = read_current_settings(settings, session=session)
        keyring = Keyring(current.secret_key, *current.secret_key_fallbacks)
        work = UnitOfWork(
            actor=Actor(means=AccessMethod.JOB),
            session=session,
            now=clock(),
            settings=current,
            policy=cast("PolicyLookup", {Keyring: keyring}.__getitem__),
        )
        queue_conflict_notices(work, partial(commit_to_release_locks, session))
