"""Visibility of projects and groups, and roles in them."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from domain.access.checks import check_role
from domain.access.roles import Role
from domain.accounts.users import NewUser, create_user
from domain.core.database.pagination import PageRequest
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.projects import namespace_changes
from domain.projects.access import get_group, get_project
from domain.projects.members import OPERATOR_VIEWER, add_member, change_role, remove_member
from domain.projects.my_projects import list_groups_with_projects, list_my_projects, search_projects
from domain.projects.namespace_lists import (
    GroupFilter,
    ProjectFilter,
    add_subgroups,
    get_project_details,
)
from domain.projects.paths import get_parent_path, list_ancestor_paths
from domain.projects.user_profiles import get_user_profile
from domain.projects.views import GroupView, Viewer
from models import Alert, Group, Member
from tests.support.accounts.memberships import all_members
from tests.support.accounts.namespaces import find_member, get_namespace
from tests.support.sign_in.password_rules import RULES

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
NOBODY = Viewer(user_id=None)
ADMIN = Viewer(user_id=None, is_admin=True)
NO_WORDS: frozenset[str] = frozenset()


@pytest.fixture
def session(in_memory: Session) -> Session:
    return in_memory


def visible_groups(viewer: Viewer, *, session: Session) -> tuple[GroupView, ...]:
    part = PageRequest(size=10, order_by="path")
    return list_groups_with_projects(GroupFilter(), part, viewer, session=session).items


def person(name: str, session: Session) -> Viewer:
    new = NewUser(username=name, email=f"{name}@example.org", name="", password="fair words 1234")
    return Viewer(user_id=create_user(new, session=session, now=NOW, rules=RULES).id)


def group(path: str, session: Session) -> None:
    namespace_changes.create_group(path, reserved=NO_WORDS, session=session, now=NOW)


def project(path: str, session: Session, visibility: str = "private") -> int:
    made = namespace_changes.create_project(
        path, visibility=visibility, reserved=NO_WORDS, session=session, now=NOW
    )
    assert made.project_id is not None
    return made.project_id


def give(path: str, name: str, role: Role, session: Session) -> None:
    namespace = get_namespace(path, session=session)
    try:
        number = find_member(namespace, name, session=session)
    except NotFoundError:
        add_member(namespace, name, role, viewer=OPERATOR_VIEWER, session=session, now=NOW)
    else:
        change_role(namespace, number, role, viewer=OPERATOR_VIEWER, session=session)


def test_a_path_lies_in_all_groups_above_it() -> None:
    assert list_ancestor_paths("acme/shops/eu") == ("acme", "acme/shops")
    assert list_ancestor_paths("acme") == ()
    assert get_parent_path("acme/shops/eu") == "acme/shops"
    assert get_parent_path("acme") is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("visibility", "seen_by_nobody", "seen_by_somebody"),
    [("private", 0, 0), ("internal", 0, 1), ("public", 1, 1)],
)
def test_visibility_applies_to_users_without_a_role(
    session: Session, visibility: str, seen_by_nobody: int, seen_by_somebody: int
) -> None:
    group("acme", session)
    project("acme/shop", session, visibility)
    somebody = person("bob", session)
    assert len(visible_groups(NOBODY, session=session)) == seen_by_nobody
    assert len(visible_groups(somebody, session=session)) == seen_by_somebody
    assert len(visible_groups(ADMIN, session=session)) == 1


@pytest.mark.long
def test_the_highest_role_in_ancestor_groups_applies(session: Session) -> None:
    group("acme", session)
    group("acme/shops", session)
    project("acme/shops/eu", session)
    bob = person("bob", session)
    give("acme", "bob", Role.REPORTER, session)
    assert get_project("acme/shops/eu", bob, session=session).role is Role.REPORTER
    give("acme/shops/eu", "bob", Role.GUEST, session)
    assert get_project("acme/shops/eu", bob, session=session).role is Role.REPORTER
    give("acme/shops", "bob", Role.MAINTAINER, session)
    assert get_project("ACME/Shops/EU", bob, session=session).role is Role.MAINTAINER


def test_a_role_in_a_group_with_a_similar_name_gives_no_access(session: Session) -> None:
    for path in ("acme", "acme-2", "acm"):
        group(path, session)
    project("acme/shop", session)
    bob = person("bob", session)
    give("acme-2", "bob", Role.OWNER, session)
    give("acm", "bob", Role.OWNER, session)
    with pytest.raises(NotFoundError):
        get_project("acme/shop", bob, session=session)


@pytest.mark.long
def test_a_low_role_is_denied_with_the_required_role(session: Session) -> None:
    group("acme", session)
    project("acme/shop", session)
    bob = person("bob", session)
    give("acme/shop", "bob", Role.DEVELOPER, session)
    found = get_project("acme/shop", bob, session=session)
    check_role(found, Role.DEVELOPER)
    assert (found.has_developer_role, found.can_maintain) == (True, False)
    with pytest.raises(ForbiddenError, match="need the Maintainer role"):
        check_role(found, Role.MAINTAINER)


@pytest.mark.long
def test_open_alerts_are_only_counted_for_users_who_may_see_them(session: Session) -> None:
    group("acme", session)
    number = project("acme/shop", session, "public")
    for iid, status in enumerate(("triggered", "acknowledged", "resolved", "ignored"), start=1):
        session.add(
            Alert(
                project_id=number, iid=iid, status=status, severity=0, title="x",
                started_at=NOW, last_event_at=NOW, created_at=NOW,
            )
        )  # fmt: skip
    bob, carol = person("bob", session), person("carol", session)
    give("acme/shop", "bob", Role.DEVELOPER, session)
    give("acme/shop", "carol", Role.REPORTER, session)
    counts = {
        viewer: visible_groups(viewer, session=session)[0].projects[0].open_alerts
        for viewer in (bob, carol, NOBODY)
    }
    assert counts == {bob: 2, carol: 0, NOBODY: 0}
    mine = list_my_projects(bob, maximum=10, session=session)
    assert [seen.open_alerts for seen in mine.projects] == [2]
    assert list_my_projects(NOBODY, maximum=10, session=session).projects == ()


@pytest.mark.long
def test_a_group_without_visible_projects_is_not_found(session: Session) -> None:
    group("acme", session)
    group("acme/shops", session)
    project("acme/shop", session)
    bob = person("bob", session)
    for viewer in (bob, NOBODY):
        with pytest.raises(NotFoundError):
            get_group("acme", viewer, session=session)
    give("acme", "bob", Role.GUEST, session)
    found = add_subgroups(get_group("ACME", bob, session=session), session=session)
    assert found.subgroups == ("acme/shops",)
    inside, part = ProjectFilter(group_id=found.id), PageRequest(size=10)
    projects = search_projects(inside, part, bob, session=session)
    assert [seen.path for seen in projects.items] == ["acme/shop"]


def test_a_path_is_unique_in_any_case_for_groups_and_projects(session: Session) -> None:
    group("acme", session)
    project("acme/Shop", session)
    with pytest.raises(ConflictError):
        group("ACME", session)
    with pytest.raises(ConflictError):
        group("acme/shop", session)
    with pytest.raises(ConflictError):
        project("acme/SHOP", session)
    with pytest.raises(InvalidError, match="must belong to a group"):
        project("alone", session)
    with pytest.raises(InvalidError, match="visibility must be"):
        project("acme/other", session, "secret")


def test_paths_below_a_group_keep_the_spelling_of_the_group(session: Session) -> None:
    group("Acme", session)
    project("aCME/shop", session)
    assert get_project("acme/shop", ADMIN, session=session).path == "Acme/shop"


def test_users_cannot_change_roles_above_their_own(session: Session) -> None:
    group("acme", session)
    namespace = get_namespace("acme", session=session)
    alice, bob, carol = (person(name, session) for name in ("alice", "bob", "carol"))
    give("acme", "alice", Role.OWNER, session)
    give("acme", "bob", Role.MAINTAINER, session)
    owner = find_member(namespace, "alice", session=session)
    with pytest.raises(InvalidError, match="You cannot give the Owner role"):
        add_member(namespace, "carol", Role.OWNER, viewer=bob, session=session, now=NOW)
    with pytest.raises(ConflictError, match="is already a member"):
        add_member(namespace, "alice", Role.GUEST, viewer=bob, session=session, now=NOW)
    with pytest.raises(ForbiddenError):
        change_role(namespace, owner, Role.GUEST, viewer=bob, session=session)
    with pytest.raises(ForbiddenError):
        remove_member(namespace, owner, viewer=bob, session=session)
    with pytest.raises(InvalidError, match="must have an owner"):
        change_role(namespace, owner, Role.MAINTAINER, viewer=alice, session=session)
    with pytest.raises(InvalidError, match="must have an owner"):
        remove_member(namespace, owner, viewer=alice, session=session)
    # Users without a role, or with a low role, cannot change members.
    give("acme", "carol", Role.DEVELOPER, session)
    with pytest.raises(ForbiddenError):
        change_role(namespace, owner, Role.OWNER, viewer=carol, session=session)
    give("acme", "bob", Role.OWNER, session)
    remove_member(namespace, owner, viewer=alice, session=session)
    with pytest.raises(ForbiddenError):
        add_member(namespace, "alice", Role.OWNER, viewer=alice, session=session, now=NOW)
    left = all_members(namespace, session=session, today=NOW.date())
    assert [member.username for member in left] == ["bob", "carol"]


@pytest.mark.long
def test_the_last_owner_of_a_subgroup_can_leave_if_an_ancestor_has_one(session: Session) -> None:
    group("acme", session)
    group("acme/shops", session)
    person("alice", session)
    bob = person("bob", session)
    give("acme", "alice", Role.OWNER, session)
    give("acme/shops", "bob", Role.OWNER, session)
    namespace = get_namespace("acme/shops", session=session)
    remove_member(
        namespace, find_member(namespace, "bob", session=session), viewer=bob, session=session
    )
    (left,) = all_members(namespace, session=session, today=NOW.date())
    assert (left.username, left.inherited_from, left.own_role) == ("alice", "acme", None)


@pytest.mark.long
def test_each_member_is_listed_once_with_the_highest_role(session: Session) -> None:
    group("acme", session)
    project("acme/shop", session)
    bob = person("bob", session)
    give("acme", "bob", Role.MAINTAINER, session)
    give("acme/shop", "bob", Role.GUEST, session)
    namespace = get_namespace("acme/shop", session=session)
    (member,) = all_members(namespace, viewer_id=bob.user_id, session=session, today=NOW.date())
    assert (member.role, member.inherited_from, member.is_you) == (Role.MAINTAINER, "acme", True)
    assert member.own_role == Role.GUEST
    give("acme/shop", "bob", Role.OWNER, session)
    (member,) = all_members(namespace, session=session, today=NOW.date())
    assert (member.role, member.inherited_from, member.is_you) == (Role.OWNER, None, False)


@pytest.mark.long
def test_an_expired_membership_gives_no_access(session: Session) -> None:
    group("acme", session)
    project("acme/shop", session)
    bob = person("bob", session)
    give("acme", "bob", Role.DEVELOPER, session)
    ends = date(2026, 11, 24)
    session.execute(update(Member).values(expires_at=ends))
    last_day, after = (replace(bob, today=ends - timedelta(days=left)) for left in (1, 0))
    assert get_project("acme/shop", last_day, session=session).role == Role.DEVELOPER
    assert len(list_my_projects(last_day, maximum=10, session=session).projects) == 1
    namespace = get_namespace("acme", session=session)
    (member,) = all_members(namespace, session=session, today=last_day.today)
    assert member.expires_at == ends
    for viewer in (after, bob):  # A viewer without a date has no roles that end.
        with pytest.raises(NotFoundError):
            get_group("acme", viewer, session=session)
        with pytest.raises(NotFoundError):
            get_project("acme/shop", viewer, session=session)
        assert visible_groups(viewer, session=session) == ()
    assert all_members(namespace, session=session, today=ends) == ()
    assert get_user_profile("bob", after, session=session).memberships == ()


def test_an_owner_with_an_expiring_role_does_not_count_as_last_owner(session: Session) -> None:
    group("acme", session)
    for name in ("alice", "bob"):
        person(name, session)
        give("acme", name, Role.OWNER, session)
    namespace = get_namespace("acme", session=session)
    bob = find_member(namespace, "bob", session=session)
    session.execute(update(Member).where(Member.id == bob).values(expires_at=date(2030, 1, 1)))
    alice = find_member(namespace, "alice", session=session)
    with pytest.raises(InvalidError, match="must have an owner"):
        remove_member(namespace, alice, viewer=OPERATOR_VIEWER, session=session)


def test_a_project_whose_group_is_deleted_concurrently_is_not_found(session: Session) -> None:
    group("acme", session)
    project("acme/shop", session)
    seen = get_project("acme/shop", ADMIN, session=session)
    # On Postgres, each statement sees earlier commits of other transactions.
    session.execute(delete(Group))
    with pytest.raises(NotFoundError):
        get_project_details(seen, ADMIN, session=session)
