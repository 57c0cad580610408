"""What each operation of the API asks for: the one table of its scopes and roles.

The mark of a view names its row (`web/api/operations.py`); the description at /api/openapi.json and
the test of every route, role, scope and visibility read the same rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from domain.accounts.roles import Role


class Place(Enum):
    """What the URL of an operation names, and where its role is needed."""

    INSTANCE = "the instance"
    PROJECT = "the project"
    GROUP = "the group"
    #: `<any(projects, groups):kind>/<path:reference>`
    NAMESPACE = "the project or group"


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What an operation asks for."""

    #: One of them is enough.
    scopes: tuple[str, ...]
    place: Place = Place.INSTANCE
    #: The lowest role in the place; None for everybody who sees it.
    least: Role | None = None
    #: The lowest role in a group, where a project and a group ask for different ones.
    least_in_group: Role | None = None
    is_for_administrators: bool = False
    #: Whether it takes a request without a token, which sees what is public.
    is_open: bool = False

    @property
    def text(self) -> str:
        """What is asked for, in words."""
        who = f"a token with {' or '.join(self.scopes)}"
        if self.is_for_administrators:
            return f"{who}, of an administrator"
        if self.least is not None:
            return f"{who}, of a member of {self.place.value}, {self.least.label} or higher"
        return f"{who}; public ones without a token" if self.is_open else who


_READ = ("api", "read_api", "read")
_READ_USER = (*_READ, "read_user")
_WRITE = ("api",)
_READ_ALERTS = (*_READ, "read_alerts", "write_alerts")
_WRITE_ALERTS = ("api", "write_alerts")


def _instance(scopes: tuple[str, ...]) -> Permission:
    return Permission(scopes=scopes)


def _administrator(scopes: tuple[str, ...]) -> Permission:
    return Permission(scopes=scopes, is_for_administrators=True)


def _project(scopes: tuple[str, ...], least: Role) -> Permission:
    return Permission(scopes=scopes, place=Place.PROJECT, least=least)


def _open_project(scopes: tuple[str, ...]) -> Permission:
    return Permission(scopes=scopes, place=Place.PROJECT, is_open=True)


def _group(scopes: tuple[str, ...], least: Role) -> Permission:
    return Permission(scopes=scopes, place=Place.GROUP, least=least)


def _open_group(scopes: tuple[str, ...]) -> Permission:
    return Permission(scopes=scopes, place=Place.GROUP, is_open=True)


def _namespace(scopes: tuple[str, ...], least: Role, *, in_group: Role) -> Permission:
    return Permission(scopes=scopes, place=Place.NAMESPACE, least=least, least_in_group=in_group)


#: By the name of the operation: its endpoint below `api_v4`.
PERMISSIONS: Mapping[str, Permission] = {
    "environments.index": _project(_READ, Role.REPORTER),
    "environments.show": _project(_READ, Role.REPORTER),
    "environments.create": _project(_WRITE, Role.MAINTAINER),
    "environments.delete": _project(_WRITE, Role.MAINTAINER),
}
