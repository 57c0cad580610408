"""Fills an empty database with two weeks of demo data."""

from collections.abc import Callable
from datetime import datetime, timedelta

from demo.applications import DemoApplications
from demo.arrangement import create_demo_objects
from demo.folder import DemoState
from demo.fortnight import ALERT_DAYS, ActionPlan, TwoWeeksOfAlerts
from demo.machine import SimulatedService
from demo.present import SpecialEvents
from domain.core.randomness import generate_random_password
from web.settings.environment import Settings

#: Time from the initial setup, a few days before the first alert, to the end.
_SETUP_LEAD_TIME = timedelta(days=ALERT_DAYS + 4)
_DAY = timedelta(days=1)


def fill_demo_database(
    settings: Settings,
    *,
    telephones: int,
    end: datetime,
    say: Callable[[str], None],
    days: int = ALERT_DAYS,
) -> DemoState:
    """Fill a migrated and empty database with events up to a moment.

    `telephones` is the port that receives pages and webhooks. Tests use fewer `days` of alerts.
    """
    password = generate_random_password()
    with SimulatedService(settings, end - _SETUP_LEAD_TIME) as machine:
        say("People, projects, integrations, schedules")
        places = create_demo_objects(
            machine, password=password, telephones=f"127.0.0.1:{telephones}"
        )
        applications = DemoApplications(machine, places, password)
        applications.register_all()
        diary = ActionPlan(machine)
        fortnight = TwoWeeksOfAlerts(machine, places, diary)
        fortnight.plan_alerts(end, days=days)
        SpecialEvents(fortnight).plan_events(end)
        applications.plan_approvals(diary, end)
        for day in range(ALERT_DAYS, 0, -1):
            moment = end - (day - 1) * _DAY
            diary.run_until(moment)
            say(f"{moment:%a} {moment.day} {moment:%B}")
    return DemoState(
        password=password,
        telephones=telephones,
        application_id=applications.board["application_id"],
        television_id=applications.television["application_id"],
        places=places,
    )
