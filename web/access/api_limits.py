"""Rate limits of the common endpoints for users, projects and groups, each with its setting.

An operation of the API states its family in its mark: `@operation(…, limit=Family.PROJECTS)`. It
is counted once its caller is known: by user, and without a token by IP address. The limit of all
API requests (API_RATE_LIMIT) counts beside it, and the headers tell which of them is nearer.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from flask import g

from domain.releases.version import parse_release
from web.access.rate_limits import Limit
from web.http.extensions import client_or_user
from web.settings.kinds import rate_in_release
from web.settings.reader import Settings


class Family(Enum):
    """Operations that are counted together."""

    #: Lists of users, and single ones.
    USERS = "users"
    USER = "user"
    #: Lists of projects, and single ones.
    PROJECTS = "projects"
    PROJECT = "project"
    #: Lists of groups, single ones, and the projects of one.
    GROUPS = "groups"
    GROUP = "group"
    GROUP_PROJECTS = "group_projects"
    #: Members of a project or group.
    MEMBERS = "members"
    #: What is handed to the release checker, on its page as well.
    RELEASE_CHECKS = "release_checks"


Setting = Callable[[Settings], str]

_SETTINGS: Mapping[Family, Setting] = {
    Family.USERS: lambda each: each.users_api_rate_limit,
    Family.USER: lambda each: each.user_api_rate_limit,
    Family.PROJECTS: lambda each: each.projects_api_rate_limit,
    Family.PROJECT: lambda each: each.project_api_rate_limit,
    Family.GROUPS: lambda each: each.groups_api_rate_limit,
    Family.GROUP: lambda each: each.group_api_rate_limit,
    Family.GROUP_PROJECTS: lambda each: each.group_projects_api_rate_limit,
    Family.MEMBERS: lambda each: each.members_api_rate_limit,
    Family.RELEASE_CHECKS: lambda each: each.release_check_rate_limit,
}
#: Families with another setting for callers without a token.
_ANONYMOUS_SETTINGS: Mapping[Family, Setting] = {
    Family.PROJECTS: lambda each: each.anonymous_projects_api_rate_limit,
}


def _limit(scope: str, setting: Setting) -> Limit:
    def rates(current: Settings) -> str:
        return rate_in_release(setting(current), parse_release(current.release))

    return Limit(rates, scope, client_or_user)


_LIMITS = {family: _limit(f"api_{family.value}", each) for family, each in _SETTINGS.items()}
_ANONYMOUS_LIMITS = {
    family: _limit(f"api_anonymous_{family.value}", each)
    for family, each in _ANONYMOUS_SETTINGS.items()
}


_SEARCHES = Limit(
    lambda each: f"{each.search_rate_limit}/minute" if each.search_rate_limit else "",
    "api_search",
    client_or_user,
)


def count_search() -> None:
    """Count a request that searches; raise 429 if it is above the rate of searches."""
    _SEARCHES.count()


def count_request(family: Family) -> None:
    """Count a request of a known caller; raise 429 if it is above the rate of its family."""
    is_anonymous = g.get("limited_user_id") is None
    limit = _ANONYMOUS_LIMITS.get(family) if is_anonymous else None
    (limit or _LIMITS[family]).count()
