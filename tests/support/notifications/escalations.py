"""Policies, schedules and routes in a new database, with the worker that runs escalations."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.status import StatusChange, change_alert_status
from domain.alerts.matching.matcher_parser import parse_matchers
from domain.audit.events import EventActor
from domain.paging.escalations.actions import create_policy, create_route
from domain.paging.escalations.reporting.explanation import EscalationView, explain_escalation
from domain.paging.escalations.types import EscalationPolicy, NewPolicy, NewRoute
from domain.paging.on_call.actions import create_schedule
from domain.paging.on_call.overrides_and_swaps import create_swap
from domain.paging.on_call.types import NewSchedule, NewSwap
from domain.paging.silences.actions import create_silence, expire_silence
from domain.paging.silences.types import NewSilence
from domain.projects.access import get_group
from domain.projects.views import GroupView, Namespace, ProjectView, Viewer
from models import Alert, AlertNote, Escalation, EscalationPage, Mail, User
from tests.support.database.work import project_in, work_in
from tests.support.notifications.paging import Pages, Person
from web.jobs.alert_changes import AlertChangeJob
from web.jobs.escalations import EscalationJob
from web.settings.environment import Settings


class Escalated(Pages):
    """A project whose alerts page users, and workers that run on request.

    Alice and Bob are members of the project.
    """

    def __init__(self, settings: Settings, mail_port: int | None = None) -> None:
        super().__init__(settings, mail_port)
        self.alice = self.person("alice")
        self.bob = self.person("bob")

    @property
    def namespace(self) -> Namespace:
        """The project acme/shop."""
        return Namespace(project_id=self.project_id, path="acme/shop")

    def policy(
        self,
        *steps: str,
        name: str = "Night",
        repeats: int = 0,
        is_default: bool = True,
        pause: str = "5m",
    ) -> EscalationPolicy:
        """Create a policy; steps have the syntax of the command line."""
        given = {"name": name, "steps": steps, "repeats": repeats, "default": is_default}
        new = NewPolicy.model_validate({**given, "repeat_pause": pause})
        with self.session() as session:
            return create_policy(self.work(session), self.project_view(session), new)

    def route(
        self, policy: EscalationPolicy | None, name: str = "Route", **conditions: Any
    ) -> None:
        """Create a route after the other routes."""
        policy_id = policy.id if policy else None
        new = NewRoute(name=name, escalation_policy_id=policy_id, **conditions)
        with self.session() as session:
            create_route(self.work(session), self.project_view(session), new)

    def work(self, session: Session) -> UnitOfWork:
        """Return a unit of work of the operator at the test's time."""
        return work_in(session, now=self.now)

    def project_view(self, session: Session) -> ProjectView:
        """Return the project as the operator sees it."""
        return project_in(session, self.project_id)

    def group_view(self, session: Session) -> GroupView:
        """Return the group of the project as the operator sees it."""
        return get_group("acme", Viewer(user_id=None, is_admin=True), session=session)

    def schedule(self, name: str, *people: Person) -> int:
        """Create a schedule with a daily rotation; the first user is on call now."""
        users = [each.username for each in people]
        rotation = {"type": "daily", "users": users, "starts_on": self.now.date()}
        rotations = [rotation] if people else []
        given = {"name": name, "time_zone": "UTC", "rotations": rotations}
        new = NewSchedule.model_validate(given)
        with self.session() as session:
            return create_schedule(self.work(session), self.project_view(session), new).id

    def swap(
        self, schedule_id: int, mine: tuple[Person, float], other: tuple[Person, float]
    ) -> None:
        """Swap an hour of two users; each hour begins at an offset from now."""
        (person, hours), (other_person, other_hours) = mine, other
        starts_at = self.now + timedelta(hours=hours)
        other_starts_at = self.now + timedelta(hours=other_hours)
        new = NewSwap(
            user=person.username,
            starts_at=starts_at,
            ends_at=starts_at + timedelta(hours=1),
            other_user=other_person.username,
            other_starts_at=other_starts_at,
            other_ends_at=other_starts_at + timedelta(hours=1),
        )
        with self.session() as session:
            create_swap(self.work(session), self.project_view(session), schedule_id, new)

    def silence(self, matchers: str, *, hours: float) -> int:
        """Create a silence that starts now, and return its id."""
        new = NewSilence(
            matchers=parse_matchers(matchers),
            starts_at=self.now,
            ends_at=self.now + timedelta(hours=hours),
            comment="deploy",
        )
        with self.session() as session:
            return create_silence(self.work(session), self.project_view(session), new).id

    def end_silence(self, silence_id: int) -> None:
        with self.session() as session:
            expire_silence(self.work(session), self.project_view(session), silence_id)

    def follow(self) -> None:
        """Process due changes of alerts and due escalation steps."""
        self.kept.get("changes", self.settings, self._make_changes).process_all_due_work()
        self.take_steps()

    def take_steps(self) -> int:
        """Process due steps, and return the number of escalations."""
        return self.kept.get("steps", self.settings, self._make_steps).process_all_due_work()

    def _make_changes(self, settings: Settings) -> AlertChangeJob:
        return AlertChangeJob(settings, clock=self._clock)

    def _make_steps(self, settings: Settings) -> EscalationJob:
        return EscalationJob(settings, clock=self._clock)

    def _clock(self) -> datetime:
        return self.now

    def raise_severity(self, alert_id: int, severity: int) -> None:
        """Change the severity of an alert, as another report does."""
        with self.session() as session:
            session.get_one(Alert, alert_id).severity = severity

    def notices(self) -> list[Mail]:
        """Return the email messages to maintainers."""
        return self.rows(Mail)

    def pass_time(self, *, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass, and do the work that is due; pages are sent a few seconds later."""
        self.now += timedelta(minutes=minutes, seconds=seconds)
        self.follow()
        self.run_for(3)
        self.take_steps()

    def act(self, alert_id: int, status: str, by: Person) -> None:
        """Change the status of an alert, as its page does."""
        change = StatusChange(status=status, by=EventActor(id=by.id, name=by.username))
        with self.session() as session:
            iid = session.get_one(Alert, alert_id).iid
            change_alert_status(self.project_id, iid, change, session=session, now=self.now)

    def resolve(self, alert_ids: Sequence[int]) -> None:
        """Resolve alerts, as reports of a monitoring system do."""
        with self.session() as session:
            for alert_id in alert_ids:
                session.get_one(Alert, alert_id).status = "resolved"

    def paged(self, alert_id: int) -> list[tuple[str, int, int]]:
        """Return the pages for an alert: name, round and step."""
        with self.session() as session:
            names = {user.id: user.username for user in session.query(User)}
        return [
            (names.get(row.user_id or 0, f"channel {row.channel_id}"), row.round, row.step)
            for row in self.rows(EscalationPage)
            if row.alert_id == alert_id
        ]

    def pages(self) -> list[EscalationPage]:
        """Return the pages of all escalation steps in order."""
        found: list[EscalationPage] = self.rows(EscalationPage)
        return found

    def outage(self, *, hours: float, severity: int) -> list[datetime]:
        """Open an alert for 3 of every 3.5 minutes, and return the times when it opened."""
        opened = []
        for _ in range(int(hours * 60 / 3.5)):
            opened.append(self.now)
            alert = self.alert(fingerprint=b"outage", severity=severity)
            self.follow()
            for _ in range(3):
                self.pass_time(seconds=57)
            with self.session() as session:
                row = session.get_one(Alert, alert)
                row.status, row.ended_at = "resolved", self.now
            self.pass_time(seconds=27)
        return opened

    def escalation(self, alert_id: int) -> Escalation:
        rows: list[Escalation] = self.rows(Escalation)
        (row,) = (each for each in rows if each.alert_id == alert_id)
        return row

    def explained(self, alert_id: int) -> EscalationView:
        """Return the state of the escalation of an alert, as its page shows it."""
        with self.session() as session:
            reading = self.work(session).policy(ParserSettings)
            return explain_escalation(
                self.project_id, alert_id, session=session, now=self.now, parser_settings=reading
            )

    def said(self, alert_id: int) -> list[str]:
        """Return the entries of escalations in the activity of an alert."""
        return [
            row.text
            for row in self.rows(AlertNote)
            if row.alert_id == alert_id and row.kind == "escalation"
        ]
