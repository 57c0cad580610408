"""The worker's part in letters: writes those that are due, and hands them to the mail server."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import unquote, urlsplit

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from domain.clock import Clock, system_clock
from domain.mail.outbox import (
    Letter,
    settle_failed,
    settle_refused,
    settle_sent,
    take_letter,
)
from domain.mail.smtp import (
    MailServer,
    NeverTakenError,
    NotTakenError,
    Postman,
    Sender,
    ServerAwayError,
)
from domain.oauth.personal_tokens.expiry_notices import Sign, write_expiry_letters
from models import InstanceSetting
from web.database.engine import open_engine
from web.settings.reader import Settings, override, settings_from_environment

_log = logging.getLogger("gatebell.letters")
#: Of smtp with and without encryption from the start (RFC 6409, RFC 8314).
_PORTS = {"smtp": 587, "smtps": 465}
#: The next run follows within the minute, and takes what this one leaves.
_LONGEST_RUN = timedelta(seconds=45)


def write_due_letters() -> None:
    """Write what is due into the outbox of the database that the environment names."""
    settings = settings_from_environment()
    if settings.mail_url:
        write_letters_of(settings)


def send_due_letters() -> None:
    """Send what waits in the outbox of the database that the environment names."""
    settings = settings_from_environment()
    if settings.mail_url:
        send_letters_of(settings)


def write_letters_of(settings: Settings, *, clock: Clock = system_clock) -> int:
    """Write what is due and return how many letters that was."""
    with _engine(settings) as engine, Session(engine) as session, session.begin():
        current = _current(settings, session)
        ahead = timedelta(days=current.expiring_token_notice_days)
        if not ahead:
            return 0
        sign = Sign(instance_name=current.instance_name, base_url=current.base_url, ahead=ahead)
        written = write_expiry_letters(sign, session=session, now=clock())
    _log.info("letters written", extra={"count": written})
    return written


def send_letters_of(settings: Settings, *, clock: Clock = system_clock) -> None:
    """Send what waits, a letter at a time; stop early if the mail server is away."""
    began = clock()
    with _engine(settings) as engine:
        with Session(engine) as session, session.begin():
            sender = _sender(_current(settings, session))
        with Postman(mail_server(settings.mail_url), sender) as postman:
            while clock() - began < _LONGEST_RUN and _send_next(engine, postman, clock):
                pass


def _send_next(engine: Engine, postman: Postman, clock: Clock) -> bool:
    """Tell whether there may be more to do."""
    with Session(engine) as session, session.begin():
        letter = take_letter(session=session, now=clock())
    if letter is None:
        return False
    try:
        postman.deliver(letter, now=clock())
    except NotTakenError as error:
        _settle_failure(letter, error, engine, clock)
        return not isinstance(error, ServerAwayError)
    with Session(engine) as session, session.begin():
        settle_sent(letter, session=session, now=clock())
    _log.info("letter sent", extra={"letter_id": letter.id, "tries": letter.tries})
    return True


def _settle_failure(letter: Letter, error: NotTakenError, engine: Engine, clock: Clock) -> None:
    """Keep why a letter was not sent; the log names neither its reader nor the server's words."""
    reason = str(error)
    with Session(engine) as session, session.begin():
        if isinstance(error, NeverTakenError):
            is_hopeful = False
            settle_refused(letter, reason, session=session)
        else:
            is_hopeful = settle_failed(letter, reason, session=session, now=clock())
    told = {"letter_id": letter.id, "tries": letter.tries, "reason": reason}
    if is_hopeful:
        _log.warning("letter not sent, trying again later", extra=told)
    else:
        _log.error("letter given up", extra=told)


@contextmanager
def _engine(settings: Settings) -> Iterator[Engine]:
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        engine.dispose()


def _current(settings: Settings, session: Session) -> Settings:
    stored = {row.name: row.value for row in session.scalars(select(InstanceSetting))}
    return override(settings, stored)


def _sender(settings: Settings) -> Sender:
    host = urlsplit(settings.base_url).hostname or "localhost"
    return Sender(name=settings.instance_name, address=settings.mail_from or f"gatebell@{host}")


def mail_server(url: str) -> MailServer:
    """Return the server of a checked address."""
    parts = urlsplit(url)
    return MailServer(
        host=parts.hostname or "",
        port=parts.port or _PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        has_implicit_tls=parts.scheme == "smtps",
    )
