"""Property tests: every message goes to a user who is allowed to receive it at that moment.

`tests/support/notifications/recipient_model.py` is an independent model of these rules.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from aiosmtpd.smtp import SMTP, Envelope
from aiosmtpd.smtp import Session as SmtpSession
from hypothesis import HealthCheck, Phase
from hypothesis import settings as profile_of
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)
from hypothesis.stateful import run_state_machine_as_test as run_histories
from hypothesis.strategies import booleans, integers, sampled_from
from sqlalchemy import delete, select, update

from domain.access.roles import Role
from domain.core.errors import ConflictError, ForbiddenError, InvalidError
from domain.paging.escalations.manual_actions import page_user, snooze_alert
from domain.paging.escalations.types import AlertPageBody, AlertSnooze
from domain.paging.maintenance_windows.actions import create_window
from domain.paging.maintenance_windows.types import NewWindow
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from domain.paging.on_call.overrides_and_swaps import create_override
from domain.paging.on_call.types import NewOverride
from domain.projects.namespace_changes import archive_project_row, create_group, unarchive_project
from domain.projects.transfers import transfer_project
from models import (
    Alert,
    AlertChange,
    AlertFollower,
    AlertNote,
    Contact,
    ContactRule,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    Group,
    Mail,
    MaintenanceWindow,
    Member,
    OnCallSchedule,
    Page,
    PageBatch,
    PageMessage,
    PageRecipient,
    Silence,
    User,
)
from tests.paging.notifications.test_rules import AWAY
from tests.paging.notifications.test_rules import rule as contact_rule
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import EVENING, Person
from tests.support.notifications.recipient_model import DAY, HOUR, MINUTE, Known, Rules
from web.settings.environment import Settings

pytestmark = [pytest.mark.both_databases, pytest.mark.hypothesis]
#: Events that can forbid a waiting message.
_FORBIDS = ("access", "guest", "block", "silence", "window", "archive", "transfer")


class Watched(Mailbox):
    """Checks each message when it arrives."""

    shop: "Watching"

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: SmtpSession, envelope: Envelope
    ) -> str:
        answer = await super().handle_DATA(server, session, envelope)
        message = self.messages[-1]
        contact = envelope.rcpt_tos[0].partition("@")[0]
        text = f"{message['Subject']}\n{message.text}"
        self.shop.model.receive(contact, text, self.shop.now)
        return answer


class Watching(Escalated):
    """Represents a project that reports every step of the clock to the model."""

    model = Rules()

    def follow(self) -> None:
        self.model.pass_moment(self.now)
        super().follow()

    def take_steps(self) -> int:
        self.model.pass_moment(self.now)
        return super().take_steps()


class Sending(RuleBasedStateMachine):
    """Generates events for three users, a schedule and a group's channel."""

    shop: Watching
    mail_url: str
    carol: Person
    schedule_id: int
    contacts: dict[str, int]

    @initialize(has_rules=booleans(), has_quiet_hours=booleans())
    def begin(self, *, has_rules: bool, has_quiet_hours: bool) -> None:
        shop = self.shop
        self.model = shop.model = Rules(has_rules=has_rules)
        self.model.members = dict.fromkeys(("alice", "bob", "carol"), Role.DEVELOPER)
        self.ids: dict[int, int] = {}
        self.ids_of_silences: list[int] = []
        self.is_mail_away = False
        shop.now = EVENING
        with shop.session() as session:
            for table in (
                *(AlertChange, AlertNote, PageMessage, Page, PageBatch, PageRecipient),
                *(EscalationPage, Escalation, EscalationPolicy, AlertFollower, ContactRule),
                *(Silence, MaintenanceWindow, Mail, Alert, OnCallSchedule),
            ):
                session.execute(delete(table))
            session.execute(update(User).values(state="active"))
            values = {"next_try_at": None, "claimed_until": None, "failing_since": None}
            session.execute(update(Contact).values(**values, tries=0))
            unarchive_project(shop.project_id, session=session)
            with suppress(InvalidError):
                transfer_project(shop.project_id, "acme", session=session, now=shop.now)
        for name in self.model.members:
            self._give_role(name, Role.DEVELOPER)
        shop.settings = replace(shop.settings, mail_url=self.mail_url)
        self.schedule_id = shop.schedule("primary", shop.alice, self.carol)
        steps = ("0s schedule:primary", "5m user:bob", "10m channel:ops")
        shop.policy(*steps, repeats=2, name="Night")
        if has_rules:
            assert shop.alice.contact is not None
            contact_rule(shop, shop.alice.contact)
            with shop.session() as session:
                mine = Contact.user_id == shop.alice.id, Contact.id != shop.alice.contact.id
                second = session.scalars(
                    select(Contact).where(*mine, Contact.address_ciphertext.is_not(None))
                ).one()
                session.add(
                    ContactRule(
                        user_id=shop.alice.id,
                        contact_id=second.id,
                        alerts="all",
                        delay_minutes=10,
                        created_at=shop.now,
                    )
                )
        if has_quiet_hours:
            self._quiet("alice", 20 * 60 + 15, 21 * 60)

    def _give_role(self, name: str, role: Role | None) -> None:
        shop = self.shop
        with shop.session() as session:
            user_id = session.scalars(select(User.id).where(User.username == name)).one()
            session.execute(delete(Member).where(Member.user_id == user_id))
            if role is not None:
                session.add(
                    Member(
                        user_id=user_id,
                        project_id=shop.project_id,
                        role=int(role),
                        created_at=EVENING,
                    )
                )
        self.model.members[name] = role

    def _quiet(self, name: str, begin: int, end: int) -> None:
        person = {"alice": self.shop.alice, "bob": self.shop.bob}[name]
        wanted = PagingPreferences(quiet_hours=QuietHours(time_zone="UTC", starts=begin, ends=end))
        with self.shop.session() as session:
            store_preferences(person.id, wanted, session=session, now=self.shop.now)
        self.model.quiet[name] = begin, end

    # Events

    @precondition(lambda self: len(self.ids) < 4)
    @rule(severity=integers(0, 2), answers=booleans())
    def open_alert(self, severity: int, *, answers: bool) -> None:
        if self.model.is_archived:
            return
        number = len(self.ids) + 1
        self.ids[number] = self.shop.alert(f"Alert {number} is open", severity=severity)
        self.model.alerts[number] = Known(
            opened_at=self.shop.now,
            severity=severity,
            was_critical=severity == 0,
            mail_was_away=self.is_mail_away,
        )
        if answers and number % 2 == 0:
            # The worker has not processed the alert yet.
            self._answer(number, "acknowledged")

    def _answer(self, number: int, status: str) -> None:
        if self.model.is_archived or self.model.alerts[number].status in {"resolved", status}:
            return
        self.shop.act(self.ids[number], status, by=self.shop.bob)
        known = self.model.alerts[number]
        known.status, known.snoozed_until = status, None

    def _some(self, which: int) -> int:
        return which % len(self.ids) + 1

    @precondition(lambda self: self.ids)
    @rule(which=integers(0, 3), status=sampled_from(["acknowledged", "triggered", "resolved"]))
    def answer(self, which: int, status: str) -> None:
        self._answer(self._some(which), status)

    @precondition(lambda self: self.ids)
    @rule(which=integers(0, 3), minutes=sampled_from([5, 30]))
    def snooze(self, which: int, minutes: int) -> None:
        number, shop = self._some(which), self.shop
        known = self.model.alerts[number]
        if known.status != "triggered":
            return
        body = AlertSnooze(duration=minutes * MINUTE)
        with shop.session() as session, suppress(ForbiddenError):
            iid = session.get_one(Alert, self.ids[number]).iid
            snooze_alert(shop.work(session), shop.project_view(session), iid, body)
            known.snoozed_until = shop.now + minutes * MINUTE

    @precondition(lambda self: self.ids)
    @rule(which=integers(0, 3))
    def rise(self, which: int) -> None:
        known = self.model.alerts[self._some(which)]
        if self.model.is_archived or known.status == "resolved":
            return
        self.shop.raise_severity(self.ids[self._some(which)], 0)
        if known.severity > 0:
            # A snoozed alert is triggered; other tests check acknowledged alerts.
            known.snoozed_until = None
            if known.status == "acknowledged":
                known.status = "raised"
        known.severity, known.was_critical = 0, True

    @precondition(lambda self: self.ids)
    @rule(which=integers(0, 3))
    def page_by_hand(self, which: int) -> None:
        number, shop = self._some(which), self.shop
        shop.wait(seconds=1)
        refusals = (InvalidError, ConflictError, ForbiddenError)
        with suppress(*refusals), shop.session() as session:
            iid = session.get_one(Alert, self.ids[number]).iid
            page_user(
                shop.work(session), shop.project_view(session), iid, AlertPageBody(user="bob")
            )
            self.model.alerts[number].asked.add("bob")

    @rule(which=integers(0, 3), minutes=sampled_from([2, 10, 60]))
    def silence(self, which: int, minutes: int) -> None:
        if self.model.is_archived:
            return
        title = which or None
        matcher = f'title="Alert {title} is open"' if title else 'title=~".+"'
        made = self.shop.silence(matcher, hours=minutes / 60)
        self.model.silences[made] = title, None, self.shop.now + minutes * MINUTE

    @precondition(lambda self: self.model.silences)
    @rule()
    def end_silences(self) -> None:
        if self.model.is_archived:
            return
        for made in [*self.model.silences]:
            with suppress(ConflictError, InvalidError):
                self.shop.end_silence(made)
            del self.model.silences[made]

    @precondition(lambda self: len(self.model.windows) < 3)
    @rule(minutes=sampled_from([5, 30]), later=sampled_from([0, 3]))
    def plan_window(self, minutes: int, later: int) -> None:
        if self.model.is_archived:
            return
        shop = self.shop
        begin = (shop.now + later * MINUTE).replace(second=0, microsecond=0)
        new = NewWindow(
            name="Upgrade", starts_at=begin.isoformat(), duration=timedelta(minutes=minutes)
        )
        with shop.session() as session:
            create_window(shop.work(session), shop.project_view(session), new)
        self.model.windows.append((begin, begin + minutes * MINUTE))

    @rule(name=sampled_from(["alice", "bob", "carol"]), role=sampled_from([None, Role.GUEST]))
    def lose_access(self, name: str, role: Role | None) -> None:
        is_back = self.model.members[name] != Role.DEVELOPER
        self._give_role(name, Role.DEVELOPER if is_back else role)

    @rule(name=sampled_from(["alice", "bob", "carol"]))
    def block(self, name: str) -> None:
        self.model.blocked ^= {name}
        state = "locked" if name in self.model.blocked else "active"
        with self.shop.session() as session:
            session.execute(update(User).where(User.username == name).values(state=state))

    @rule()
    def archive_or_unarchive(self) -> None:
        with self.shop.session() as session:
            if self.model.is_archived:
                unarchive_project(self.shop.project_id, session=session)
            else:
                archive_project_row(self.shop.project_id, session=session, now=self.shop.now)
        self.model.is_archived = not self.model.is_archived

    @rule()
    def transfer(self) -> None:
        group = "other" if self.model.group == "acme" else "acme"
        with self.shop.session() as session:
            transfer_project(self.shop.project_id, group, session=session, now=self.shop.now)
        self.model.group = group

    @rule(begin=sampled_from([0, 30]), minutes=sampled_from([20, 90]))
    def override(self, begin: int, minutes: int) -> None:
        starts_at = self.shop.now + begin * MINUTE
        ends_at = starts_at + minutes * MINUTE
        if self._is_exchanged(starts_at, ends_at) or not self._may_change_shifts("bob"):
            return
        new = NewOverride(user="bob", starts_at=starts_at, ends_at=ends_at)
        shop = self.shop
        with shop.session() as session:
            work, project = shop.work(session), shop.project_view(session)
            create_override(work, project, self.schedule_id, new)
        self.model.exchanged.append((starts_at, ends_at, "bob"))

    @rule()
    def swap(self) -> None:
        now = self.shop.now
        mine, other = now, now + DAY
        who = self.model.on_call(now)
        taken = any(self._is_exchanged(each, each + HOUR) for each in (mine, other))
        if taken or who == "bob" or self.model.on_call(now + HOUR) != who:
            return
        if not self._may_change_shifts("alice", "carol"):
            return
        people = {"alice": self.shop.alice, "carol": self.carol}
        partner = "carol" if who == "alice" else "alice"
        self.shop.swap(self.schedule_id, (people[who], 0), (people[partner], 24))
        self.model.exchanged.append((mine, mine + HOUR, partner))
        self.model.exchanged.append((other, other + HOUR, who))

    def _may_change_shifts(self, *names: str) -> bool:
        return not self.model.is_archived and all(map(self.model.may_see, names))

    def _is_exchanged(self, begin: datetime, end: datetime) -> bool:
        return any(start < end and begin < stop for start, stop, _ in self.model.exchanged)

    @rule()
    def mail_goes_or_comes_back(self) -> None:
        self.is_mail_away = not self.is_mail_away
        self._set_mail()

    def _set_mail(self) -> None:
        url = AWAY if self.is_mail_away else self.mail_url
        self.shop.settings = replace(self.shop.settings, mail_url=url)
        for known in self.model.alerts.values():
            known.mail_was_away = known.mail_was_away or self.is_mail_away

    @rule(minutes=sampled_from([1, 2, 5, 15]))
    def time_passes(self, minutes: int) -> None:
        for _ in range(min(minutes, 5)):
            self.shop.pass_time(minutes=max(minutes / 5, 1))
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
        # A snooze that a worker ended by the wrong clock stays ended.
        for known in self.model.alerts.values():
            if known.snoozed_until is not None and known.snoozed_until <= self.shop.now:
                known.snoozed_until = None
        self.shop.now -= timedelta(hours=3)
        for known in self.model.alerts.values():
            known.received = {name: min(at, self.shop.now) for name, at in known.received.items()}
        self.shop.pass_time(seconds=1)
        self.check()

    @precondition(lambda self: len(self.ids) < 4)
    @rule(
        severity=integers(0, 2),
        minutes=sampled_from([0, 1, 12]),
        what=sampled_from(_FORBIDS),
    )
    def something_forbids_a_message_that_waits(
        self, severity: int, minutes: int, what: str
    ) -> None:
        """Delay a message by mail or by a rule, and change the recipients of an alert meanwhile."""
        if self.model.is_archived:
            return
        if not minutes:
            self.is_mail_away = True
            self._set_mail()
        self.open_alert(severity=severity, answers=False)
        for _ in range(max(minutes, 1)):
            self.shop.pass_time(minutes=1)
        whom = self.model.on_call(self.shop.now)
        acts: Mapping[str, Callable[[], None]] = {
            "access": lambda: self._give_role(whom, None),
            "guest": lambda: self._give_role(whom, Role.GUEST),
            "block": lambda: self.block(whom),
            "silence": lambda: self.silence(0, 60),
            "window": lambda: self.plan_window(30, 0),
            "archive": self.archive_or_unarchive,
            "transfer": self.transfer,
        }
        acts[what]()
        self.is_mail_away = False
        self._set_mail()
        for _ in range(6):
            self.shop.pass_time(minutes=2)
        self.check()

    def check(self) -> None:
        assert self.model.wrong == [], "\n".join(self.model.wrong)

    def teardown(self) -> None:
        """Remove all restrictions, and check that each waiting alert is sent to a user."""
        if not hasattr(self, "ids"):
            return
        model, shop = self.model, self.shop
        if model.is_archived:
            self.archive_or_unarchive()
        if model.group != "acme":
            self.transfer()
        self.end_silences()
        for name in model.members:
            self._give_role(name, Role.DEVELOPER)
        with shop.session() as session:
            session.execute(update(User).values(state="active"))
            session.execute(delete(MaintenanceWindow))
        model.blocked.clear()
        model.windows.clear()
        self.is_mail_away = False
        self._set_mail()
        for _ in range(14):
            shop.pass_time(minutes=5)
        self.check()
        with shop.session() as session:
            waiting = session.execute(
                select(Alert.id, Alert.title).where(Alert.status == "triggered")
            ).all()
        for _alert_id, title in waiting:
            number = int(title.split()[1])
            assert model.alerts[number].received, f"nobody was told of {title}"


@contextmanager
def a_shop(given: Settings) -> Iterator[Watching]:
    mailbox = Watched()
    with running_mail_server(mailbox) as port:
        shop = mailbox.shop = Watching(given, port)
        with shop.session() as session:
            create_group("other", reserved=frozenset(), session=session, now=shop.now)
            group_id = session.scalars(select(Group.id).where(Group.path == "acme")).one()
        shop.contact(
            ContactOwner(group_id=group_id), parse_email_address("room@chat.example"), label="ops"
        )
        shop.email_contact(shop.alice.id, "second@pager.example")
        yield shop
        shop.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("minutes", [0, 1])
@pytest.mark.parametrize("what", _FORBIDS)
def test_each_event_that_forbids_a_message_applies_while_it_waits(
    settings: Settings, what: str, minutes: int
) -> None:
    """Let the message wait for the mail server, or for a notification rule."""
    with a_shop(settings) as shop:
        given = {
            "shop": shop,
            "mail_url": shop.settings.mail_url,
            "carol": shop.person("carol"),
        }
        history = type("History", (Sending,), given)()
        history.begin(has_rules=True, has_quiet_hours=False)
        history.something_forbids_a_message_that_waits(severity=1, minutes=minutes, what=what)
        history.teardown()


#: Number of histories in `make test`.
FEW = 6


def run(settings: Settings, *, examples: int, steps: int, phases: Sequence[Phase]) -> None:
    with a_shop(settings) as shop:
        given = {
            "shop": shop,
            "mail_url": shop.settings.mail_url,
            "carol": shop.person("carol"),
        }
        histories = type("Histories", (Sending,), given)
        profile = profile_of(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=phases,
            # The same few histories run each time; `make properties` tries others.
            derandomize=examples <= FEW,
            suppress_health_check=list(HealthCheck),
        )
        run_histories(histories, settings=profile)


def test_no_user_gets_a_forbidden_message_and_no_message_is_lost(
    settings: Settings, request: pytest.FixtureRequest
) -> None:
    """Run histories; `make properties` runs more of them."""
    is_long = request.config.getoption("--hypothesis-profile") == "fuzz"
    run(
        settings,
        examples=300 if is_long else FEW,
        steps=40 if is_long else 15,
        phases=tuple(Phase),
    )
