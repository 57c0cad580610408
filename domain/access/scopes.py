"""OAuth scopes, in the order in which they are displayed and stored."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class ScopeAccess(StrEnum):
    """The level of access that a scope grants."""

    READ = "read"
    #: Changes to one kind of object.
    WRITE = "write"
    #: All actions that the user is allowed to perform.
    FULL = "full"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A scope, with its title and description for the consent page."""

    name: str
    title: str
    description: str
    access: ScopeAccess = ScopeAccess.READ
    #: True if the user has not granted the scope before; some pages highlight new scopes.
    is_new: bool = False
    #: True if any application may request the scope without being registered for it.
    is_free: bool = False
    #: False for a scope that has no effect yet. Requests for the scope are accepted, since API
    #: clients make them, but pages and the metadata do not list the scope.
    is_offered: bool = True
    #: False for an access token scope that applications cannot request.
    is_for_applications: bool = True
    #: False for a scope that the metadata omits, since some clients request all listed scopes.
    is_announced: bool = True
    #: True if only tokens of administrators may have the scope.
    is_for_administrators: bool = False


SCOPES: tuple[Scope, ...] = (
    Scope(
        name="api",
        title="Full access to the API",
        description=(
            "Read and change everything that you can access: projects, alerts, members, tokens."
        ),
        access=ScopeAccess.FULL,
    ),
    Scope(
        name="read_api",
        title="Read access to the API",
        description="Read projects, alerts and members, without changing anything.",
    ),
    Scope(
        name="read",
        title="Read access to the API (former name)",
        description="Same as read_api, for applications written for older releases.",
    ),
    Scope(
        name="read_user",
        title="Read your profile",
        description="Read your username, display name and email address.",
    ),
    Scope(
        name="openid",
        title="Sign you in",
        description="Read your user ID, the time of your sign-in, and your groups.",
    ),
    Scope(
        name="profile",
        title="Read your name when you sign in",
        description="Read your username, display name, picture, time zone and profile URL.",
    ),
    Scope(
        name="email",
        title="Read your email address when you sign in",
        description="Read your email address.",
    ),
    Scope(
        name="read_repository",
        title="Read your repositories",
        description="Clone and fetch with Git over HTTPS.",
    ),
    Scope(
        name="write_repository",
        title="Change your repositories",
        description="Clone, fetch and push with Git over HTTPS.",
        access=ScopeAccess.WRITE,
    ),
    Scope(
        name="read_registry",
        title="Read your container images",
        description="Pull images from the container registry.",
        is_for_applications=False,
    ),
    Scope(
        name="write_registry",
        title="Change your container images",
        description="Pull, push and delete images in the container registry.",
        is_for_applications=False,
        access=ScopeAccess.WRITE,
    ),
    Scope(
        name="read_alerts",
        title="Read alerts",
        description="Read the alerts of your projects.",
    ),
    Scope(
        name="write_alerts",
        title="Manage alerts",
        description="Read the alerts of your projects and change their status.",
        access=ScopeAccess.WRITE,
    ),
    Scope(
        name="offline_access",
        title="Access while you are away",
        description="Renew its access without asking you again, until you revoke the access.",
        is_free=True,
    ),
    Scope(
        name="admin_mode",
        title="Administer this instance",
        description=(
            "Use your administrator rights: manage users, applications and settings, and access "
            "all projects and groups."
        ),
        is_announced=False,
        is_for_administrators=True,
        access=ScopeAccess.FULL,
    ),
    Scope(
        name="sudo",
        title="Act as any user",
        description="Make requests to the API as another user, with the Sudo header.",
        is_for_applications=False,
        is_for_administrators=True,
        access=ScopeAccess.FULL,
    ),
)

#: Scope that gives an administrator's token administrator rights.
ADMIN_MODE = "admin_mode"
#: Scope that lets the personal token of an administrator act as another user.
SUDO = "sudo"
SCOPES_BY_NAME = {scope.name: scope for scope in SCOPES}
#: Scopes that every application may request.
ALWAYS_ALLOWED_SCOPES = frozenset(scope.name for scope in SCOPES if scope.is_free)
#: Scopes that an application can be registered for.
REGISTRABLE_SCOPES = tuple(
    scope.name
    for scope in SCOPES
    if not scope.is_free and scope.is_offered and scope.is_for_applications
)
#: Scopes that only access tokens of users, projects and groups may have.
NON_APPLICATION_SCOPES = frozenset(scope.name for scope in SCOPES if not scope.is_for_applications)
#: Scopes that only tokens of administrators may have.
ADMINISTRATOR_SCOPES = frozenset(scope.name for scope in SCOPES if scope.is_for_administrators)
#: Scopes that the server metadata lists.
PUBLISHED_SCOPES = tuple(
    scope.name
    for scope in SCOPES
    if scope.is_offered and scope.is_for_applications and scope.is_announced
)
_SCOPE_POSITIONS = {scope.name: position for position, scope in enumerate(SCOPES)}


class UnknownScopeError(ValueError):
    """Error that lists unknown scopes."""

    def __init__(self, names: Sequence[str]) -> None:
        """Build the message from the unknown names."""
        parts = {part for name in names for part in re.split("[,;+]", name) if part}
        #: Advice if known scopes are separated incorrectly; otherwise empty.
        self.hint = (
            "; separate scopes with spaces" if parts and parts <= SCOPES_BY_NAME.keys() else ""
        )
        self.names = names
        super().__init__(f"unknown scope: {', '.join(names)[:200]}{self.hint}")


def parse_scopes(text: str) -> tuple[str, ...]:
    """Parse a space-separated list of scopes.

    Return the scopes without duplicates, in the order of `SCOPES`. Raise UnknownScopeError for
    unknown scopes.
    """
    names = set(text.split())
    unknown = sorted(names - SCOPES_BY_NAME.keys())
    if unknown:
        raise UnknownScopeError(unknown)
    return sort_scopes(names)


def filter_grantable_scopes(scopes: str, *, may_administer: bool) -> str:
    """Return the scopes that a user can grant.

    Only administrators can grant `admin_mode`.
    """
    given = scopes.split()
    return " ".join(name for name in given if may_administer or name != ADMIN_MODE)


def sort_scopes(names: Iterable[str]) -> tuple[str, ...]:
    """Return known scopes in the order of `SCOPES`."""
    return tuple(sorted(set(names), key=_SCOPE_POSITIONS.__getitem__))


def describe_scopes(names: Iterable[str], *, new: Iterable[str] = ()) -> tuple[Scope, ...]:
    """Return the scopes with these names for display.

    The scopes in `new` are marked as new.
    """
    fresh = set(new)
    return tuple(replace(SCOPES_BY_NAME[name], is_new=name in fresh) for name in sort_scopes(names))
