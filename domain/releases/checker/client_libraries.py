"""Requests sent through python-gitlab managers and gitbeaker resources.

Both clients name their objects after the paths of the API. Names are compared in snake case.
"""

from collections.abc import Sequence
from typing import NamedTuple

from domain.releases.checker.requests import API_PATH

_PROJECT, _GROUP = f"{API_PATH}/projects/1", f"{API_PATH}/groups/1"
#: Names of objects that stand for the whole instance.
_ROOT_OBJECTS = frozenset(
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
_ANY_OBJECT: frozenset[str] = frozenset()
_MERGE_REQUESTS = frozenset(
    {"mr", "merge_request", "mergerequest", "mergerequests", "merge_requests"}
)
#: HTTP methods by client method.
_METHODS_BY_VERB = {
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
_SINGLE_OBJECT_VERBS = frozenset({"get", "show", "edit", "update", "remove", "delete"})


class _ClientResource(NamedTuple):
    """A client object, with the path of its collection in the API."""

    name: str
    #: Names of objects, one of which must precede this object in a call. Empty for any object.
    of: frozenset[str]
    path: str


_RESOURCES = (
    _ClientResource("users", _ROOT_OBJECTS, f"{API_PATH}/users"),
    _ClientResource("settings", _ROOT_OBJECTS, f"{API_PATH}/application/settings"),
    _ClientResource("application_settings", _ANY_OBJECT, f"{API_PATH}/application/settings"),
    _ClientResource("projects", _ROOT_OBJECTS, f"{API_PATH}/projects"),
    _ClientResource("runners", _ROOT_OBJECTS, f"{API_PATH}/runners"),
    _ClientResource("releases", _ANY_OBJECT, f"{_PROJECT}/releases"),
    _ClientResource("project_releases", _ANY_OBJECT, f"{_PROJECT}/releases"),
    _ClientResource(
        "links", frozenset({"release", "releases"}), f"{_PROJECT}/releases/1/assets/links"
    ),
    _ClientResource("release_links", _ANY_OBJECT, f"{_PROJECT}/releases/1/assets/links"),
    _ClientResource("deployments", _ANY_OBJECT, f"{_PROJECT}/deployments"),
    _ClientResource("environments", _ANY_OBJECT, f"{_PROJECT}/environments"),
    _ClientResource("statuses", frozenset({"commit", "commits"}), f"{_PROJECT}/statuses/1"),
    _ClientResource(
        "personal_access_tokens",
        frozenset({"user", "users"}),
        f"{API_PATH}/users/1/personal_access_tokens",
    ),
    _ClientResource(
        "access_tokens", frozenset({"project", "projects"}), f"{_PROJECT}/access_tokens"
    ),
    _ClientResource("access_tokens", frozenset({"group", "groups"}), f"{_GROUP}/access_tokens"),
    _ClientResource("feature_flags", _ANY_OBJECT, f"{_PROJECT}/feature_flags"),
    _ClientResource("packages", frozenset({"project", "projects"}), f"{_PROJECT}/packages"),
    _ClientResource("member_roles", frozenset({"group", "groups"}), f"{_GROUP}/member_roles"),
    _ClientResource(
        "tags",
        frozenset({"repositories", "registry", "registry_repositories", "registry_repository"}),
        f"{_PROJECT}/registry/repositories/1/tags",
    ),
    _ClientResource("ci_lint", _ANY_OBJECT, f"{_PROJECT}/ci/lint"),
    _ClientResource("notes", _MERGE_REQUESTS, f"{_PROJECT}/merge_requests/1/notes"),
    _ClientResource("notes", frozenset({"issue", "issues"}), f"{_PROJECT}/issues/1/notes"),
    _ClientResource("merge_request_notes", _ANY_OBJECT, f"{_PROJECT}/merge_requests/1/notes"),
    _ClientResource("issue_notes", _ANY_OBJECT, f"{_PROJECT}/issues/1/notes"),
)
#: Requests by the last two names of a call.
_REQUESTS_BY_CALL = {
    ("runners", "reset_registration_token"): (
        "POST",
        f"{API_PATH}/runners/reset_registration_token",
    ),
    ("container_registry", "all_tags"): ("GET", f"{_PROJECT}/registry/repositories/1/tags"),
    ("commits", "edit_status"): ("POST", f"{_PROJECT}/statuses/1"),
    ("lint", "check"): ("GET", f"{_PROJECT}/ci/lint"),
    ("approvals", "set_approvals"): ("POST", f"{_PROJECT}/merge_requests/1/approvals"),
    ("merge_request_approvals", "edit_configuration"): (
        "POST",
        f"{_PROJECT}/merge_requests/1/approvals",
    ),
}
_SINGLETON_PATHS = frozenset({f"{API_PATH}/application/settings", f"{_PROJECT}/ci/lint"})


def find_client_request(chain: Sequence[str]) -> tuple[str, str] | None:
    """Return the method and path of the request that a call such as `gl.users.list` sends."""
    if len(chain) < len(("users", "list")):
        return None
    resource, verb = chain[-2], chain[-1]
    if (resource, verb) in _REQUESTS_BY_CALL:
        return _REQUESTS_BY_CALL[resource, verb]
    method = _METHODS_BY_VERB.get(verb)
    if method is None:
        return None
    path = _find_resource_path(resource, chain[:-2])
    if path is None:
        return None
    is_single_object = verb in _SINGLE_OBJECT_VERBS and path not in _SINGLETON_PATHS
    return method, f"{path}/1" if is_single_object else path


def _find_resource_path(name: str, before: Sequence[str]) -> str | None:
    for resource in _RESOURCES:
        if resource.name != name:
            continue
        if not resource.of or (resource.of is _ROOT_OBJECTS and resource.of.issuperset(before)):
            return resource.path
        if resource.of is not _ROOT_OBJECTS and not resource.of.isdisjoint(before):
            return resource.path
    return None
