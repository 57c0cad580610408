"""Requests sent by known clients: managers of python-gitlab and resources of gitbeaker.

Both name their objects after the paths of the API. Names are compared in snake case.
"""

from collections.abc import Sequence
from typing import NamedTuple

from domain.releases.checker.requests import API

_PROJECT, _GROUP = f"{API}/projects/1", f"{API}/groups/1"
#: Objects that stand for the whole instance.
_ROOTS = frozenset(
    [
        "self",
        "gl",
        "gitlab",
        "client",
        "api",
        "server",
        "instance",
        "conn",
        "connection",
        "gitlab_client",
        "gitlab_api",
        "gitlab_instance",
        "git",
        "g",
        "gl_client",
        "_gitlab",
        "_gl",
        "_client",
        "_api",
    ]
)
_ANY: frozenset[str] = frozenset()
_MERGE_REQUESTS = frozenset(
    {"mr", "merge_request", "mergerequest", "mergerequests", "merge_requests"}
)
#: HTTP methods by client method.
_VERBS = {
    "list": "GET",
    "all": "GET",
    "get": "GET",
    "show": "GET",
    "create": "POST",
    "add": "POST",
    "register": "POST",
    "edit": "PUT",
    "update": "PUT",
    "remove": "DELETE",
    "delete": "DELETE",
}
#: Client methods that apply to a single object.
_OF_ONE = frozenset({"get", "show", "edit", "update", "remove", "delete"})


class _Resource(NamedTuple):
    """An object of a client with the path of its collection."""

    name: str
    #: Objects, one of which must come before this object. Empty for any.
    of: frozenset[str]
    path: str


_RESOURCES = (
    _Resource("users", _ROOTS, f"{API}/users"),
    _Resource("settings", _ROOTS, f"{API}/application/settings"),
    _Resource("application_settings", _ANY, f"{API}/application/settings"),
    _Resource("projects", _ROOTS, f"{API}/projects"),
    _Resource("runners", _ROOTS, f"{API}/runners"),
    _Resource("releases", _ANY, f"{_PROJECT}/releases"),
    _Resource("project_releases", _ANY, f"{_PROJECT}/releases"),
    _Resource("links", frozenset({"release", "releases"}), f"{_PROJECT}/releases/1/assets/links"),
    _Resource("release_links", _ANY, f"{_PROJECT}/releases/1/assets/links"),
    _Resource("deployments", _ANY, f"{_PROJECT}/deployments"),
    _Resource("environments", _ANY, f"{_PROJECT}/environments"),
    _Resource("statuses", frozenset({"commit", "commits"}), f"{_PROJECT}/statuses/1"),
    _Resource(
        "personal_access_tokens",
        frozenset({"user", "users"}),
        f"{API}/users/1/personal_access_tokens",
    ),
    _Resource("access_tokens", frozenset({"project", "projects"}), f"{_PROJECT}/access_tokens"),
    _Resource("access_tokens", frozenset({"group", "groups"}), f"{_GROUP}/access_tokens"),
    _Resource("feature_flags", _ANY, f"{_PROJECT}/feature_flags"),
    _Resource("packages", frozenset({"project", "projects"}), f"{_PROJECT}/packages"),
    _Resource("member_roles", frozenset({"group", "groups"}), f"{_GROUP}/member_roles"),
    _Resource(
        "tags",
        frozenset({"repositories", "registry", "registry_repositories", "registry_repository"}),
        f"{_PROJECT}/registry/repositories/1/tags",
    ),
    _Resource("ci_lint", _ANY, f"{_PROJECT}/ci/lint"),
    _Resource("notes", _MERGE_REQUESTS, f"{_PROJECT}/merge_requests/1/notes"),
    _Resource("notes", frozenset({"issue", "issues"}), f"{_PROJECT}/issues/1/notes"),
    _Resource("merge_request_notes", _ANY, f"{_PROJECT}/merge_requests/1/notes"),
    _Resource("issue_notes", _ANY, f"{_PROJECT}/issues/1/notes"),
)
#: Requests by the last two names of a call.
_CALLS = {
    ("runners", "reset_registration_token"): ("POST", f"{API}/runners/reset_registration_token"),
    ("container_registry", "all_tags"): ("GET", f"{_PROJECT}/registry/repositories/1/tags"),
    ("commits", "edit_status"): ("POST", f"{_PROJECT}/statuses/1"),
    ("lint", "check"): ("GET", f"{_PROJECT}/ci/lint"),
    ("approvals", "set_approvals"): ("POST", f"{_PROJECT}/merge_requests/1/approvals"),
    ("merge_request_approvals", "edit_configuration"): (
        "POST",
        f"{_PROJECT}/merge_requests/1/approvals",
    ),
}
_SINGLE = frozenset({f"{API}/application/settings", f"{_PROJECT}/ci/lint"})


def request_of(chain: Sequence[str]) -> tuple[str, str] | None:
    """Return the method and path that a call such as `gl.users.list` requests, or None."""
    if len(chain) < len(("users", "list")):
        return None
    resource, verb = chain[-2], chain[-1]
    if (resource, verb) in _CALLS:
        return _CALLS[resource, verb]
    method = _VERBS.get(verb)
    if method is None:
        return None
    path = _path_of(resource, chain[:-2])
    if path is None:
        return None
    is_of_one = verb in _OF_ONE and path not in _SINGLE
    return method, f"{path}/1" if is_of_one else path


def _path_of(name: str, before: Sequence[str]) -> str | None:
    for resource in _RESOURCES:
        if resource.name != name:
            continue
        if not resource.of or (resource.of is _ROOTS and resource.of.issuperset(before)):
            return resource.path
        if resource.of is not _ROOTS and not resource.of.isdisjoint(before):
            return resource.path
    return None
