"""Actions check the actor and the state of the project for every interface."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.access.actions import Action, action, read_action
from domain.access.actor import OPERATOR, AccessMethod, Actor, UnitOfWork
from domain.access.features import AccessLevel, Feature
from domain.access.permissions import NON_API_PERMISSIONS, PERMISSIONS, PermissionTarget
from domain.access.roles import Ability, Role
from domain.core.errors import ForbiddenError, NotFoundError
from domain.paging.silences import actions as silences
from domain.paging.silences.types import NewSilence, Silence, SilenceQuery
from domain.projects.views import GroupView, ProjectView

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
MEMBER = Actor(means=AccessMethod.TOKEN, id=7, name="alice")


@action("silences.delete", command="expire")
def end(work: UnitOfWork, project: ProjectView, silence_id: int) -> str:
    """Simulate an action that ends an object."""
    del work
    return f"{project.path} {silence_id}"


@read_action("silences.show")
def look(work: UnitOfWork, project: ProjectView) -> str:
    """Simulate an action that reads an object."""
    del work
    return project.path


@action("users.block")
def block(work: UnitOfWork) -> str:
    """Simulate an action for administrators."""
    return work.actor.name


@action("users.create")
def create(work: UnitOfWork) -> None:
    """Simulate an action that applications cannot call."""
    del work


@action("resource_tokens.create")
def make_token(work: UnitOfWork, holder: ProjectView | GroupView) -> str:
    """Simulate an action that requires a higher role in groups than in projects."""
    del work
    return holder.path


def work_of(actor: Actor) -> UnitOfWork:
    unused: Any = None
    return UnitOfWork(actor=actor, session=unused, now=NOW, settings=unused, policy=unused)


def project(role: Role | None = Role.DEVELOPER, **more: Any) -> ProjectView:
    return ProjectView(
        id=1,
        name="shop",
        path="acme/shop",
        visibility="private",
        created_at=NOW,
        role=role,
        group_id=1,
        **more,
    )


def group(role: Role) -> GroupView:
    return GroupView(id=1, name="acme", path="acme", role=role, created_at=NOW)


def test_actions_require_a_role_or_an_ability() -> None:
    assert end(work_of(MEMBER), project(), 3) == "acme/shop 3"
    for lower in (Role.REPORTER, None):
        with pytest.raises(ForbiddenError, match="You need the Developer role in acme/shop"):
            end(work_of(MEMBER), project(lower), 3)
    custom = project(Role.GUEST, abilities=frozenset({Ability.ADMIN_ALERTS}))
    assert end(work_of(MEMBER), custom, 3) == "acme/shop 3"


def test_the_operator_needs_no_role() -> None:
    assert end(work_of(OPERATOR), project(None), 3) == "acme/shop 3"
    assert block(work_of(OPERATOR)) == ""


@pytest.mark.parametrize("actor", [MEMBER, OPERATOR])
def test_an_archived_project_cannot_be_changed_by_any_actor(actor: Actor) -> None:
    archived = project(Role.OWNER, is_archived=True)
    with pytest.raises(ForbiddenError, match="is archived"):
        end(work_of(actor), archived, 3)
    assert look(work_of(actor), archived) == "acme/shop"


def test_an_archived_project_can_be_restored_left_and_deleted() -> None:
    rows = {**PERMISSIONS, **NON_API_PERMISSIONS}
    assert {name for name, each in rows.items() if each.in_archived} == {
        *("projects.archive", "projects.unarchive", "projects.delete", "projects.unshare"),
        *("members.delete", "resource_tokens.revoke"),
    }


def test_actions_of_a_disabled_feature_are_denied() -> None:
    levels = {**project().access_levels, Feature.MONITOR: AccessLevel.DISABLED}
    off = project(Role.OWNER, access_levels=levels)
    with pytest.raises(ForbiddenError, match="Monitoring is turned off"):
        look(work_of(MEMBER), off)
    assert look(work_of(OPERATOR), off) == "acme/shop"
    for actor in (MEMBER, OPERATOR):
        with pytest.raises(ForbiddenError, match="Monitoring is turned off"):
            end(work_of(actor), off, 3)
    private = {**levels, Feature.MONITOR: AccessLevel.PRIVATE}
    stranger = project(None, access_levels=private, abilities=frozenset({Ability.READ_ALERTS}))
    with pytest.raises(NotFoundError):
        look(work_of(MEMBER), stranger)


def test_actions_require_a_scope_of_the_token() -> None:
    token = replace(MEMBER, means=AccessMethod.TOKEN, scopes=frozenset({"read_alerts"}))
    with pytest.raises(ForbiddenError, match="scope"):
        end(work_of(token), project(), 3)
    assert look(work_of(token), project()) == "acme/shop"
    wider = replace(token, scopes=frozenset({"write_alerts"}))
    assert end(work_of(wider), project(), 3) == "acme/shop 3"


def test_actions_for_administrators_or_users_are_denied_to_others() -> None:
    with pytest.raises(ForbiddenError, match="administrators"):
        block(work_of(MEMBER))
    administrator = replace(MEMBER, is_admin=True)
    assert block(work_of(administrator)) == "alice"
    create(work_of(administrator))
    with pytest.raises(ForbiddenError, match="Applications cannot"):
        create(work_of(replace(administrator, is_application=True)))


def test_an_action_can_require_different_roles_in_groups_and_projects() -> None:
    assert make_token(work_of(MEMBER), project(Role.MAINTAINER)) == "acme/shop"
    with pytest.raises(ForbiddenError, match="Owner"):
        make_token(work_of(MEMBER), group(Role.MAINTAINER))
    assert make_token(work_of(MEMBER), group(Role.OWNER)) == "acme"


def test_an_action_has_the_types_of_its_arguments_and_its_result() -> None:
    made: Action[Any, Any] = silences.create_silence
    assert (made.input_type, made.input_name, made.result_type) == (NewSilence, "new", Silence)
    assert (made.target_name, dict(made.url_variables), made.command) == ("holder", {}, "create")
    assert (made.changes, made.is_available_to_api, made.is_list) == (True, True, False)
    listed: Action[Any, Any] = silences.list_silences
    assert (listed.input_type, listed.result_type, listed.is_list) == (SilenceQuery, Silence, True)
    changed: Action[Any, Any] = silences.change_silence
    assert (dict(changed.url_variables), changed.command) == ({"silence_id": int}, "change")
    assert silences.expire_silence.command == "expire"
    assert made.summary == "Create a silence."
    assert not silences.fetch_silence_page.is_available_to_api


def test_an_action_without_a_row_in_the_table_cannot_be_declared() -> None:
    assert "silences.polish" not in PERMISSIONS
    with pytest.raises(KeyError):
        action("silences.polish")(lambda _work: None)


@pytest.mark.parametrize("name", PERMISSIONS)
def test_permissions_in_projects_and_groups_name_a_role_or_are_open(name: str) -> None:
    permission = PERMISSIONS[name]
    if permission.target is not PermissionTarget.INSTANCE:
        assert permission.least is not None or permission.is_open
