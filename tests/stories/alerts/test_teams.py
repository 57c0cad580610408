"""Schedules, policies and routes of a group are used by all projects of its team."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.core.errors import ConflictError
from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import MessageSettings
from domain.paging.contacts.actions import delete_channel
from domain.paging.escalations.actions import (
    create_policy,
    create_route,
    delete_policy,
    delete_route,
)
from domain.paging.escalations.paging_gaps import queue_gap_notices
from domain.paging.escalations.types import EscalationPolicy, NewPolicy, NewRoute
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.on_call.actions import create_schedule, delete_schedule
from domain.paging.on_call.overrides_and_swaps import create_override
from domain.paging.on_call.types import NewOverride, NewSchedule
from domain.projects.access import resolve_group, resolve_project
from domain.projects.deletion import count_contents
from domain.projects.group_actions import delete_group, transfer_group
from domain.projects.namespace_changes import ReservedNames, create_group
from domain.projects.project_actions import transfer_project
from domain.projects.types import GroupTransfer, ProjectTransfer, RepositoryLookup, RepositoryState
from domain.projects.views import ProjectOrGroup, Viewer
from models import AlertFollower, Group, Mail, Member
from tests.support.database.work import work_in
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person
from web.settings.environment import Settings

pytestmark = pytest.mark.both_databases
Result = TypeVar("Result")
_OPERATOR = Viewer(user_id=None, is_admin=True)
#: Repository of a project without any push.
_EMPTY = RepositoryState(default_branch=None, is_empty=True)
_POLICIES = (ReservedNames(frozenset()), RepositoryLookup(lambda _project: _EMPTY))


class Team(Escalated):
    """Alice and Bob, who are developers in the group acme, and their actions."""

    def __init__(self, settings: Settings, mail_port: int) -> None:
        super().__init__(settings, mail_port)
        self.join(self.alice, "acme")
        self.join(self.bob, "acme")

    def join(self, person: Person, group: str, role: Role = Role.DEVELOPER) -> None:
        with self.session() as session:
            group_id = session.scalar(select(Group.id).where(Group.path == group))
            member = Member(user_id=person.id, group_id=group_id, role=int(role))
            member.created_at = self.now
            session.add(member)

    def group(self, path: str) -> int:
        with self.session() as session:
            made = create_group(path, reserved=frozenset(), session=session, now=self.now)
            return made.group_id or 0

    @contextmanager
    def at(self, path: str) -> Iterator[tuple[UnitOfWork, ProjectOrGroup]]:
        """Open a transaction in a project, or in a group if the path ends with a slash."""
        with self.session() as session:
            work = work_in(session, now=self.now, policies=_POLICIES)
            find: Callable[..., ProjectOrGroup] = (
                resolve_group if path.endswith("/") else resolve_project
            )
            yield work, find(path.rstrip("/"), _OPERATOR, session=session)

    def do(self, path: str, act: Callable[..., Result], *given: Any) -> Result:
        """Call an action in a project or group."""
        with self.at(path) as (work, holder):
            return act(work, holder, *given)

    def schedule_at(self, path: str, name: str, *people: Person) -> int:
        users = [each.username for each in people]
        rotation = {"type": "weekly", "users": users}
        given = {"name": name, "time_zone": "UTC", "rotations": [rotation]}
        return self.do(path, create_schedule, NewSchedule.model_validate(given)).id

    def policy_at(
        self, path: str, *steps: str, name: str = "Night", default: bool = True
    ) -> EscalationPolicy:
        new = NewPolicy.model_validate({"name": name, "steps": steps, "default": default})
        return self.do(path, create_policy, new)

    def whom(self, project_id: int, **changes: Any) -> list[str]:
        """Open an alert of a project, and return the users who are paged immediately."""
        alert = self.alert(project_id=project_id, **changes)
        self.pass_time(seconds=1)
        return [name for name, _, _ in self.paged(alert)]

    def followed(self) -> set[int]:
        """Return the projects whose changes of alerts are stored for escalations."""
        with self.session() as session:
            return set(session.scalars(select(AlertFollower.project_id)))


@pytest.fixture
def mailbox() -> Mailbox:
    """Messages that the mail server accepted."""
    return Mailbox()


@pytest.fixture
def team(settings: Settings, mailbox: Mailbox) -> Iterator[Team]:
    """A team, and the first of its projects, acme/shop."""
    with running_mail_server(mailbox) as port:
        made = Team(settings, port)
        yield made
        made.close()


def test_a_team_has_one_schedule_for_its_projects(team: Team, mailbox: Mailbox) -> None:
    schedule = team.schedule_at("acme/", "Primary", team.alice)
    room = team.contact(
        ContactOwner(group_id=_group(team, "acme")), parse_email_address("room@pager.example")
    )
    policy = team.policy_at("acme/", "0s schedule:Primary", f"5m channel:{room.label}")
    # One project existed before, and another one is created.
    site = team.project("acme/site")
    assert (team.whom(team.project_id), team.whom(site)) == (["alice"], ["alice"])
    team.pass_time(minutes=5)
    assert mailbox.recipients.count(["room@pager.example"]) == 1

    # An override in the schedule of the group concerns both.
    week = NewOverride(user="bob", starts_at=team.now, ends_at=team.now + timedelta(days=7))
    team.do("acme/", create_override, schedule, week)
    assert (team.whom(team.project_id), team.whom(site)) == (["bob"], ["bob"])

    # Routes of the project are evaluated before routes of the group, and its own default policy
    # takes precedence.
    team.do(
        "acme/",
        create_route,
        NewRoute(name="Minor", severities=("low",), escalation_policy_id=None),
    )
    carol = team.person("carol", role=None)
    team.join(carol, "acme")
    own = team.policy_at("acme/site", "0s user:carol", name="Own")
    assert (team.whom(team.project_id), team.whom(site)) == (["bob"], ["carol"])
    assert (team.whom(team.project_id, severity=3), team.whom(site, severity=3)) == ([], [])
    minor = NewRoute(name="Own minor", severities=("low",), escalation_policy_id="Night")
    team.do("acme/site", create_route, minor)
    assert (team.whom(team.project_id, severity=3), team.whom(site, severity=3)) == ([], ["bob"])

    # The nearest group decides.
    team.group("acme/db")
    deep = team.project("acme/db/main")
    assert team.whom(deep) == ["bob"]
    team.policy_at("acme/db/", "0s user:alice")
    assert (team.whom(deep), team.whom(team.project_id)) == (["alice"], ["bob"])
    alert = team.alert(project_id=team.project_id)
    team.pass_time(seconds=1)
    told = team.explained(alert)
    assert told.reason == "the default policy of acme, because no route matches"
    assert (told.policy, own.group, policy.group) == ("Night", None, "acme")


@pytest.mark.long
def test_a_transferred_project_pages_the_users_of_its_new_group(team: Team) -> None:
    team.schedule_at("acme/", "Primary", team.alice)
    team.policy_at("acme/", "0s schedule:primary", "30m user:bob")
    team.group("other")
    dan = team.person("dan", role=None)
    team.join(dan, "other", Role.OWNER)
    team.join(team.alice, "other")
    site = team.project("acme/site")
    assert team.followed() == {team.project_id, site}

    # Its own policy pages a user of the former group, and the transfer warns about it.
    own = team.policy_at("acme/site", "0s schedule:primary", name="Own", default=False)
    to_other = ProjectTransfer(namespace="other")
    with pytest.raises(ConflictError, match="policy Own pages the schedule Primary of acme"):
        team.do("acme/site", transfer_project, to_other)
    team.do("acme/site", delete_policy, own.id)
    route = team.do("acme/site", create_route, NewRoute(name="All", escalation_policy_id="Night"))
    with pytest.raises(ConflictError, match="route All uses the escalation policy Night of acme"):
        team.do("acme/site", transfer_project, to_other)
    team.do("acme/site", delete_route, route.id)

    # The former group pages no users any more, neither for new nor for open alerts.
    under_way = team.alert(project_id=site)
    team.pass_time(seconds=1)
    team.policy_at("other/", "0s user:dan")
    team.do("acme/site", transfer_project, to_other)
    assert team.whom(site) == ["dan"]
    assert team.paged(under_way) == [("alice", 1, 1), ("dan", 1, 1)]
    told = "The escalation policy no longer applies. Paging starts again with another policy."
    assert told in team.said(under_way)
    team.do("other/site", transfer_project, ProjectTransfer(namespace="acme"))

    # The same applies to a group with a project in it.
    team.group("acme/db")
    deep = team.project("acme/db/main")
    assert team.whom(deep) == ["alice"]
    with team.session() as session:
        to = session.scalar(select(Group.id).where(Group.path == "other"))
    team.do("acme/db/", transfer_group, GroupTransfer(group_id=to))
    assert team.whom(deep) == ["dan"]
    # A transfer out of all groups with a policy ends the escalations.
    team.join(dan, "other/db", Role.OWNER)
    team.do("other/db/", transfer_group, GroupTransfer(group_id=None))
    assert (team.whom(deep), deep in team.followed()) == ([], False)
    assert team.followed() == {team.project_id, site}


def test_group_objects_that_projects_use_cannot_be_deleted(team: Team) -> None:
    schedule = team.schedule_at("acme/", "Primary", team.alice)
    room = team.contact(
        ContactOwner(group_id=_group(team, "acme")), parse_email_address("room@pager.example")
    )
    shared = team.policy_at("acme/", "0s user:alice", default=False)
    own = team.policy_at("acme/shop", "0s schedule:primary", f"1m channel:{room.label}", name="Own")
    route = NewRoute(name="All", escalation_policy_id="Night")
    made = team.do("acme/shop", create_route, route)
    for act, number, why in (
        (delete_schedule, schedule, "policy Own of acme/shop pages this schedule"),
        (delete_channel, room.id, "policy Own of acme/shop pages this channel"),
        (delete_policy, shared.id, "route All of acme/shop uses this policy"),
    ):
        with pytest.raises(ConflictError, match=why):
            team.do("acme/", act, number)
    team.do("acme/shop", delete_route, made.id)

    # Escalations with the policy of the group prevent its deletion, unless other users take over.
    team.do("acme/shop", delete_policy, own.id)
    site = team.project("acme/site")
    team.do("acme/", create_route, route)
    with team.at("acme/") as (work, group):
        counts = {
            each.word: each.count for each in count_contents(group.namespace, session=work.session)
        }
    assert {"on-call schedule", "escalation policy", "project"} <= counts.keys()
    assert team.whom(site) == ["alice"]
    assert team.followed() == {team.project_id, site}
    with pytest.raises(ConflictError, match="uses this policy"):
        team.do("acme/", delete_policy, shared.id)

    # The first check finds missing objects, and maintainers of the group see more details.
    carol = team.person("carol", role=None)
    team.join(carol, "acme", Role.MAINTAINER)
    sign = MessageSettings(
        instance_name="Gatebell",
        base_url="http://gatebell.example",
        keyring=Keyring(team.settings.secret_key),
    )
    look = _looking(team, sign)
    assert look() == 0
    with team.session() as session:
        session.query(Member).filter_by(user_id=team.alice.id).delete()
    assert look() == 2
    mails = {mail.recipient: mail for mail in team.rows(Mail)}
    assert "http://gatebell.example/groups/acme/-/on_call" in mails["carol@accounts.example"].text
    team.do("acme/", delete_group)
    assert team.whom(site) == []


def _looking(team: Team, sign: MessageSettings) -> Callable[[], int]:
    def look() -> int:
        with team.session() as session:
            return queue_gap_notices(
                sign, session=session, now=team.now, commit_batch=session.flush
            )

    return look


def _group(team: Team, path: str) -> int:
    with team.session() as session:
        return session.scalars(select(Group.id).where(Group.path == path)).one()
