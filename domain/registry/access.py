"""Permissions in the registry, derived from requested scopes, roles and token scopes.

This module implements the "Token Scope Documentation" of Docker's registry. A request names
resources and actions, and the token contains the allowed actions, if any.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.core.errors import DomainError, InvalidError, NotFoundError
from domain.projects.access import PRIVATE, PUBLIC, get_project
from domain.projects.views import ProjectView, Viewer
from domain.registry.repositories import belongs_to_deleted_project, find_repository_project

#: Scopes that allow pulling, and scopes that also allow pushing and deletion.
PULL_SCOPES = frozenset({"api", "read_registry", "write_registry"})
PUSH_SCOPES = frozenset({"api", "write_registry"})
_REPOSITORY_TYPE = "repository"
_CATALOG_RESOURCE = ("registry", "catalog")
_MAX_SCOPES = 50
_MAX_SCOPE_LENGTH = 1_000


class InvalidRegistryCredentialsError(DomainError):
    """Error for credentials that are missing or not valid for the registry."""


@dataclass(frozen=True, kw_only=True)
class Requester:
    """The viewer who requests a registry token, and the scopes of the viewer's access token."""

    viewer: Viewer
    token_scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class RequestedScope:
    """A resource and the requested actions."""

    resource_type: str
    name: str
    actions: tuple[str, ...]

    def build_access_claim(self, actions: Iterable[str]) -> dict[str, object]:
        """Return an entry for the `access` claim with the allowed actions."""
        return {"type": self.resource_type, "name": self.name, "actions": sorted(actions)}


def parse_requested_scopes(texts: Iterable[str]) -> tuple[RequestedScope, ...]:
    """Return the scopes in `scope` parameters, each of which may contain several scopes.

    The scopes in a parameter are separated by spaces. Raise InvalidError if a scope is malformed,
    or if there are too many scopes.
    """
    words = [word for text in texts for word in text.split(" ") if word]
    if len(words) > _MAX_SCOPES:
        message = f"`scope` can contain at most {_MAX_SCOPES} scopes."
        raise InvalidError(message, field="scope")
    return tuple(_parse_scope(word) for word in words)


def _parse_scope(word: str) -> RequestedScope:
    # The name may contain another colon, before the port of a host.
    kind, colon, rest = word.partition(":")
    name, last_colon, actions = rest.rpartition(":")
    if not (kind and colon and name and last_colon) or len(word) > _MAX_SCOPE_LENGTH:
        message = "`scope` must have the form repository:NAME:ACTION,ACTION."
        raise InvalidError(message, field="scope")
    wanted = tuple(dict.fromkeys(action for action in actions.split(",") if action))
    return RequestedScope(resource_type=kind, name=name, actions=wanted)


def find_allowed_access(
    scopes: Iterable[RequestedScope], requester: Requester, *, session: Session
) -> list[dict[str, object]]:
    """Return the `access` claim of a token: the requested resources with the allowed actions.

    Resources without allowed actions are left out.
    """
    found = ((scope, _find_granted_actions(scope, requester, session=session)) for scope in scopes)
    return [scope.build_access_claim(actions) for scope, actions in found if actions]


def _find_granted_actions(
    scope: RequestedScope, requester: Requester, *, session: Session
) -> set[str]:
    wanted = set(scope.actions)
    if (scope.resource_type, scope.name) == _CATALOG_RESOURCE:
        lists_all = requester.viewer.is_admin and "api" in requester.token_scopes
        return wanted & {"*"} if lists_all else set()
    if scope.resource_type != _REPOSITORY_TYPE:
        return set()
    return wanted & find_repository_actions(scope.name, requester, session=session)


def find_repository_actions(name: str, requester: Requester, *, session: Session) -> set[str]:
    """Return all actions that a requester may perform on a repository."""
    project = find_repository_project(name, session=session)
    if project is None or belongs_to_deleted_project(name, session=session):
        return set()
    try:
        seen = get_project(project.path, requester.viewer, session=session)
    except NotFoundError:
        return set()
    return find_project_actions(seen, requester.token_scopes)


def find_project_actions(project: ProjectView, token_scopes: frozenset[str]) -> set[str]:
    """Return the actions that a role and token scopes allow in a visible project.

    Pulling from a public project needs no scope, because it is allowed without a token. An archived
    project is read-only.
    """
    role = project.role or 0
    may_pull = project.visibility != PRIVATE or role >= Role.REPORTER
    allowed = set()
    if project.visibility == PUBLIC or (may_pull and token_scopes & PULL_SCOPES):
        allowed.add("pull")
    if not token_scopes & PUSH_SCOPES or project.is_archived:
        return allowed
    if role >= Role.DEVELOPER:
        allowed |= {"pull", "push"}
    if role >= Role.MAINTAINER:
        allowed |= {"delete", "*"}
    return allowed
