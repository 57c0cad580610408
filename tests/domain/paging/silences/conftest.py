"""A project with alerts, silences and maintenance windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from domain.accounts.users import get_user
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.status import StatusChange, change_alert_status
from domain.alerts.matching.alert_labels import AlertLabels, find_alert_labels
from domain.alerts.matching.matcher_parser import parse_matchers
from domain.audit.events import EventActor
from domain.paging.silences.actions import create_silence
from domain.paging.silences.active_mutes import Mute, find_mutes
from domain.paging.silences.flapping import store_flap_settings
from domain.paging.silences.types import FlapSettings, NewSilence, Silence
from models import Project
from tests.support.accounts.people import alice, database_of, now
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.database.work import project_in, user_actor, work_in
from tests.support.service.live import LiveGatebell

READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Quiet:
    """The alerts of a project, and questions about them."""

    gatebell: LiveGatebell
    endpoint: Endpoint
    project_id: int
    actor: EventActor

    def fire(self, title: str = "Down", **fields: str) -> int:
        """Send an alert, and return its number."""
        iid = self.endpoint.accepted(title=title, fingerprint=title, **fields)["iid"]
        assert isinstance(iid, int)
        return iid

    def resolve(self, title: str = "Down") -> None:
        """Send the recovery of an alert."""
        self.endpoint.accepted(title=title, fingerprint=title, end_time=now().isoformat())

    def set_status(self, iid: int, status: str) -> None:
        """Change the status of an alert as Alice."""
        change = StatusChange(status=status, by=self.actor)
        with database_of(self.gatebell) as session:
            change_alert_status(self.project_id, iid, change, session=session, now=now())

    def silence(
        self, matchers: str, *, begin: datetime | None = None, length: timedelta = YEAR / 12
    ) -> Silence:
        """Silence alerts, by default for about a month from now."""
        start = begin or now()
        new = NewSilence(matchers=parse_matchers(matchers), starts_at=start, ends_at=start + length)
        with database_of(self.gatebell) as session:
            actor = user_actor(self.actor.id, self.actor.name)
            project = project_in(session, self.project_id)
            return create_silence(work_in(session, actor=actor), project, new)

    def configure(self, settings: FlapSettings) -> None:
        """Store the flap settings of the project."""
        with database_of(self.gatebell) as session:
            store_flap_settings(self.project_id, settings, session=session)

    def labels(self) -> Sequence[AlertLabels]:
        """Return all alerts of the project."""
        alerts = list_stored_alerts(self.gatebell, self.endpoint.project)
        with database_of(self.gatebell) as session:
            found = find_alert_labels(
                (alert.id for alert in alerts), session=session, reading=READING
            )
        return tuple(found.values())

    def muted(self, at: datetime | None = None) -> Mapping[int, Mute]:
        """Return the reasons why pages are held, by the number of the alert."""
        labels = self.labels()
        numbers = {each.alert_id: each.iid for each in labels}
        with database_of(self.gatebell) as session:
            found = find_mutes(labels, moment=at or now(), session=session)
        return {numbers[alert_id]: mute for alert_id, mute in found.items()}


@pytest.fixture
def quiet(gatebell: LiveGatebell) -> Quiet:
    person = alice(gatebell)
    endpoint = connect(gatebell)
    with database_of(gatebell) as session:
        project_id = session.scalars(
            select(Project.id).where(Project.path == endpoint.project)
        ).one()
        user = get_user(person.username, session=session)
    return Quiet(gatebell, endpoint, project_id, EventActor(id=user.id, name=user.username))
