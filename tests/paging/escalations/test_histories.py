"""Property tests: after random events, every open alert pages a user, and no user twice."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as profile_of
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_histories
from hypothesis.strategies import booleans, integers, sampled_from
from sqlalchemy import delete, func, select, update

from domain.core.errors import ConflictError, ForbiddenError
from domain.paging.escalations.actions import delete_policy
from domain.paging.escalations.policy_steps import MAX_UNREACHED_PAUSE
from domain.paging.escalations.state import EscalationState
from domain.projects.namespace_changes import archive_project_row, unarchive_project
from models import (
    Alert,
    AlertChange,
    AlertFollower,
    AlertNote,
    AlertRoute,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    Mail,
    Page,
    PageBatch,
    PageMessage,
    PageRecipient,
    Silence,
    User,
)
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from web.settings.environment import Settings

pytestmark = [pytest.mark.both_databases, pytest.mark.hypothesis]
MINUTE = timedelta(minutes=1)
#: Longest possible wait for a page: a pause between rounds that reach no user, a check of held
#: escalations, and a step of the policies below.
LONGEST = MAX_UNREACHED_PAUSE + timedelta(minutes=35)
AWAY = "smtp://127.0.0.1:1"
_UNDER_WAY = {EscalationState.RUNNING.value, EscalationState.HELD.value}


class Night(RuleBasedStateMachine):
    """Generates events for two users, two policies and a few alerts."""

    shop: Escalated
    mail_url: str
    log: pytest.LogCaptureFixture

    def __init__(self) -> None:
        super().__init__()
        self.alerts: list[int] = []
        self.silence_id: int | None = None
        self.is_archived = False
        self.is_mail_away = False
        self.ahead = timedelta()
        self.locked: set[str] = set()
        #: Time since which each alert is triggered without an interruption or a hold.
        self.waits_since: dict[int, object] = {}

    @initialize(repeats=integers(0, 2))
    def begin(self, repeats: int) -> None:
        shop = self.shop
        self.log.clear()
        with shop.session() as session:
            for table in (
                *(AlertChange, AlertNote, PageMessage, Page, PageBatch, PageRecipient),
                *(EscalationPage, Escalation, AlertRoute, EscalationPolicy, AlertFollower),
                *(Silence, Mail, Alert),
            ):
                session.execute(delete(table))
            session.execute(update(User).values(state="active"))
            unarchive_project(shop.project_id, session=session)
        shop.settings = replace(shop.settings, mail_url=self.mail_url)
        night = shop.policy(
            "0s user:alice", "5m user:bob", repeats=repeats, name="Night", is_default=False
        )
        shop.route(night, "Critical", severities=["critical"])
        shop.policy("0s user:bob", "10m user:alice", name="Usual")

    # Events

    @precondition(lambda self: len(self.alerts) < 3)
    @rule(severity=integers(0, 2), is_same=booleans())
    def open_alert(self, severity: int, *, is_same: bool) -> None:
        if self.is_archived:
            return
        fingerprint = b"same" if is_same and not self._is_open(b"same") else None
        self.alerts.append(self.shop.alert(severity=severity, fingerprint=fingerprint))

    @precondition(lambda self: self.alerts)
    @rule(which=integers(0, 2), severity=integers(0, 3))
    def change_severity(self, which: int, severity: int) -> None:
        self.shop.raise_severity(self.alerts[which % len(self.alerts)], severity)

    @precondition(lambda self: self.alerts)
    @rule(which=integers(0, 2), status=sampled_from(["acknowledged", "triggered", "ignored"]))
    def answer(self, which: int, status: str) -> None:
        alert = self.alerts[which % len(self.alerts)]
        with self.shop.session() as session:
            present = session.get_one(Alert, alert).status
        if present not in {"resolved", status} and not self.is_archived:
            self.shop.act(alert, status, by=self.shop.alice)

    @precondition(lambda self: self.alerts)
    @rule(which=integers(0, 2))
    def resolve(self, which: int) -> None:
        alert = self.alerts.pop(which % len(self.alerts))
        with self.shop.session() as session:
            row = session.get_one(Alert, alert)
            row.status, row.ended_at = "resolved", self.shop.now

    @rule()
    def silence(self) -> None:
        if self.silence_id is None and not self.is_archived:
            self.silence_id = self.shop.silence('title=~".+"', hours=1)
        elif self.silence_id is not None:
            with self.shop.session() as session:
                session.execute(delete(Silence))
            self.silence_id = None

    @rule()
    def archive(self) -> None:
        with self.shop.session() as session:
            if self.is_archived:
                unarchive_project(self.shop.project_id, session=session)
            else:
                archive_project_row(self.shop.project_id, session=session, now=self.shop.now)
        self.is_archived = not self.is_archived

    @rule()
    def mail_goes_or_comes_back(self) -> None:
        self.is_mail_away = not self.is_mail_away
        url = AWAY if self.is_mail_away else self.mail_url
        self.shop.settings = replace(self.shop.settings, mail_url=url)

    @rule(name=sampled_from(["alice", "bob"]))
    def block(self, name: str) -> None:
        self.locked ^= {name}
        state = "locked" if name in self.locked else "active"
        with self.shop.session() as session:
            session.execute(update(User).where(User.username == name).values(state=state))

    @rule()
    def delete_the_default_policy(self) -> None:
        with self.shop.session() as session:
            row = session.scalar(select(EscalationPolicy).where(EscalationPolicy.is_default))
            policy_id = row.id if row else None
        if policy_id is None:
            # A policy cannot include a locked user.
            if not self.locked and not self.is_archived:
                self.shop.policy("0s user:alice user:bob", name="Usual")
            return
        with self.shop.session() as session:
            try:
                delete_policy(self.shop.work(session), self.shop.project_view(session), policy_id)
            except (ConflictError, ForbiddenError):
                session.rollback()

    @rule(minutes=sampled_from([0.1, 1, 5, 20]))
    def time_passes(self, minutes: float) -> None:
        self.shop.pass_time(minutes=minutes)
        self.check()

    @rule()
    def the_service_is_away(self) -> None:
        self.shop.wait(hours=1)
        self.shop.pass_time()
        self.check()

    @rule()
    def the_clock_runs_ahead_and_is_set_back(self) -> None:
        self.shop.now += timedelta(hours=3)
        self.shop.pass_time()
        self.shop.now -= timedelta(hours=3)
        self.shop.pass_time(seconds=1)
        self.check()

    # Invariants

    def check(self) -> None:
        # A message is discarded if mail is unavailable for a long time.
        errors = [vars(each).get("event") for each in self.log.records if each.levelname == "ERROR"]
        assert set(errors) <= {"page.failed"}
        self._somebody_is_due()
        self._nobody_twice()
        self._silences_are_explained()

    def _somebody_is_due(self) -> None:
        with self.shop.session() as session:
            by_alert = {row.alert_id: row for row in session.scalars(select(Escalation))}
            triggered = session.scalars(select(Alert.id).where(Alert.status == "triggered")).all()
        for alert_id in triggered:
            row = by_alert.get(alert_id)
            if self.is_archived and row is None:
                continue
            assert row is not None, f"alert {alert_id} has no escalation"
            state = EscalationState(row.state)
            if state in {EscalationState.EXHAUSTED, EscalationState.UNANSWERED}:
                # A user was reached in the last round, and had time to answer.
                assert row.has_reached
            elif state is EscalationState.NO_POLICY:
                with self.shop.session() as session:
                    usual = select(EscalationPolicy.id).where(EscalationPolicy.is_default)
                    severity = session.get_one(Alert, alert_id).severity
                    assert severity > 0 or session.scalar(usual) is None
            else:
                assert row.state in _UNDER_WAY, row.state
                assert row.next_at is not None
                assert row.next_at <= self.shop.now + LONGEST

    def _nobody_twice(self) -> None:
        """Check that each step and each repetition sends one message to a contact."""
        with self.shop.session() as session:
            keys = session.scalars(select(EscalationPage.page_key)).all()
            assert len(keys) == len(set(keys))
            twice = (
                select(PageMessage.batch_id, PageMessage.contact_id)
                .where(PageMessage.batch_id.is_not(None))
                .group_by(PageMessage.batch_id, PageMessage.contact_id)
                .having(func.count() > 1)
            )
            assert session.execute(twice).all() == []

    def _silences_are_explained(self) -> None:
        """Check that the activity explains each step that pages no user or is held."""
        with self.shop.session() as session:
            held = session.scalars(select(Escalation).where(Escalation.state == "held")).all()
            for row in held:
                said = select(AlertNote.text).where(AlertNote.alert_id == row.alert_id)
                assert any(f"{row.held_by}" in text for text in session.scalars(said)), row.held_by

    def _is_open(self, fingerprint: bytes) -> bool:
        with self.shop.session() as session:
            is_open = Alert.fingerprint == fingerprint, Alert.status != "resolved"
            return session.scalar(select(Alert.id).where(*is_open)) is not None


@contextmanager
def a_shop(given: Settings) -> Iterator[Escalated]:
    with running_mail_server(Mailbox()) as port:
        made = Escalated(given, port)
        yield made
        made.close()


def test_a_page_is_always_due_and_no_user_is_paged_twice(
    settings: Settings, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """Run histories; `make properties` runs more of them."""
    with ExitStack() as stack:
        shop = stack.enter_context(a_shop(settings))
        given = {"shop": shop, "mail_url": shop.settings.mail_url, "log": caplog}
        histories = type("Histories", (Night,), given)
        run_histories(histories, settings=_profile(request))


def _profile(request: pytest.FixtureRequest) -> profile_of:
    is_long = request.config.getoption("--hypothesis-profile") == "fuzz"
    return profile_of(
        max_examples=300 if is_long else 8,
        stateful_step_count=40 if is_long else 15,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
