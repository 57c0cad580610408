"""Runs the hourly check of users of identity providers without waiting."""

from datetime import timedelta

from sqlalchemy import update

from models import Identity
from tests.support.accounts.people import database_of, now
from tests.support.service.live import LiveGatebell
from web.jobs.identities import check_identities
from web.settings.environment import parse_settings


def check_in_an_hour(service: LiveGatebell) -> None:
    """Let the worker check all users, as if the last checks were two hours old."""
    with database_of(service) as session:
        session.execute(update(Identity).values(checked_at=now() - timedelta(hours=2)))
    check_identities(parse_settings(service.environment))
