"""Fills an empty database with two weeks of demo data."""

from collections.abc import Callable
from datetime import datetime, timedelta

from demo.applications import Applications
from demo.arrangement import arrange
from demo.folder import Memory
from demo.fortnight import DAYS, Diary, Fortnight
from demo.machine import Machine
from demo.present import Present
from domain.core.randomness import random_password
from web.settings.reader import Settings

#: Time between the initial setup and the end, which starts some days before the first alert.
_BEFORE = timedelta(days=DAYS + 4)
_DAY = timedelta(days=1)


def furnish(
    settings: Settings,
    *,
    telephones: int,
    end: datetime,
    say: Callable[[str], None],
    days: int = DAYS,
) -> Memory:
    """Fill a migrated and empty database with events up to a moment.

    `telephones` is the port that receives pages and webhooks. Tests use fewer `days` of alerts.
    """
    password = random_password()
    with Machine(settings, end - _BEFORE) as machine:
        say("People, projects, integrations, schedules")
        places = arrange(machine, password=password, telephones=f"127.0.0.1:{telephones}")
        applications = Applications(machine, places, password)
        applications.register()
        diary = Diary(machine)
        fortnight = Fortnight(machine, places, diary)
        fortnight.plan(end, days=days)
        Present(fortnight).plan(end)
        applications.plan(diary, end)
        for day in range(DAYS, 0, -1):
            moment = end - (day - 1) * _DAY
            diary.live_until(moment)
            say(f"{moment:%a} {moment.day} {moment:%B}")
    return Memory(
        password=password,
        telephones=telephones,
        application_id=applications.board["application_id"],
        television_id=applications.television["application_id"],
        places=places,
    )
