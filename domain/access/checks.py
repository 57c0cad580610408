"""Checks of an actor's permissions, and of the state of a project or group."""

from typing import Protocol

from domain.access.actor import Actor
from domain.access.features import AccessLevel, Feature, find_feature
from domain.access.permissions import Permission
from domain.access.roles import Ability, Role
from domain.core.errors import ForbiddenError, NotFoundError


class TargetView(Protocol):
    """A project or group as the actor sees it: `ProjectView` or `GroupView`."""

    @property
    def path(self) -> str:
        """The full path of the project or group."""

    @property
    def role(self) -> Role | None:
        """The actor's role in the project or group, or None."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that custom roles add to the role."""

    @property
    def is_group(self) -> bool:
        """True for a group."""

    @property
    def is_personal(self) -> bool:
        """True for a user's personal namespace.

        Always False for a project.
        """

    @property
    def is_archived(self) -> bool:
        """True if the project is archived and cannot be changed.

        Always False for a group.
        """

    def get_access_level(self, feature: Feature) -> AccessLevel:
        """Return the access level of a feature: disabled, private (members only) or enabled."""


def check_permission(
    permission: Permission, actor: Actor, target: TargetView | None = None
) -> None:
    """Check that the actor has a permission, in the target if a target is given.

    Raise ForbiddenError if the actor does not have the permission.
    """
    if actor.is_trusted:
        return
    if actor.scopes is not None and actor.scopes.isdisjoint(permission.scopes):
        scope = permission.scopes[-1]
        raise ForbiddenError(f"This action requires a token with the {scope} scope.")
    if permission.is_for_administrators and not actor.is_admin:
        raise ForbiddenError("Only administrators of the instance can do this.")
    if permission.is_for_people and actor.is_application:
        message = "Applications cannot do this. Use a personal access token, or the web interface."
        raise ForbiddenError(message)
    if target is not None:
        check_role(
            target, permission.get_minimum_role(is_group=target.is_group), permission.ability
        )


def check_role(
    target: TargetView, minimum_role: Role | None, ability: Ability | None = None
) -> None:
    """Check that the actor has at least this role, or a custom role with this ability.

    Raise ForbiddenError if the actor has neither.
    """
    has_role = minimum_role is None or (target.role is not None and target.role >= minimum_role)
    if not has_role and ability not in target.abilities:
        check_not_personal(target)
        label = "" if minimum_role is None else minimum_role.label
        raise ForbiddenError(f"You need the {label} role in {target.path}.")


def check_project_state(
    permission: Permission, room: str, target: TargetView, *, changes: bool
) -> None:
    """Check that the state of a project permits an action.

    `room` is the resource of the action. Raise ForbiddenError if the project is archived or the
    feature of the resource is turned off. Raise NotFoundError if only members can use the feature,
    and the actor is not a member.
    """
    feature = find_feature(room)
    if feature is not None:
        check_feature(target, feature)
    if changes:
        check_not_personal(target)
    if changes and not permission.in_archived:
        check_not_archived(target)


def check_feature(target: TargetView, feature: Feature) -> None:
    """Check that the actor can use a feature.

    Raise ForbiddenError if the feature is turned off. Raise NotFoundError if only members can use
    it, and the actor is not a member.
    """
    level = target.get_access_level(feature)
    if level is AccessLevel.DISABLED:
        raise ForbiddenError(f"{feature.label} is turned off in {target.path}.")
    if level is AccessLevel.PRIVATE and target.role is None:
        raise NotFoundError("Project not found, or you do not have access.")


def check_not_personal(target: TargetView) -> None:
    """Check that the target is not a personal namespace.

    Personal namespaces are managed through the owner's account. Raise ForbiddenError for a personal
    namespace.
    """
    if target.is_personal:
        message = f"{target.path} is a personal namespace, which can only contain projects."
        raise ForbiddenError(message)


def check_not_archived(target: TargetView) -> None:
    """Check that a project is not archived.

    Raise ForbiddenError if the project is archived.
    """
    if target.is_archived:
        message = f"{target.path} is archived and cannot be changed. Unarchive it first."
        raise ForbiddenError(message)
