"""The hourly check of who signs in through a provider, without the hour."""

from datetime import timedelta

from sqlalchemy import update

from models import Identity
from tests.support.accounts.people import database_of, now
from tests.support.service.live import LiveGatebell
from web.jobs.identities import check_identities
from web.settings.reader import read_settings


def check_in_an_hour(service: LiveGatebell) -> None:
    """Let the worker check everybody, as if nobody had been checked for two hours."""
    with database_of(service) as session:
        session.execute(update(Identity).values(checked_at=now() - timedelta(hours=2)))
    check_identities(read_settings(service.environment))
