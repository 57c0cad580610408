"""Rate limits of common endpoints for users, projects and groups, each with its own setting.

An operation of the API declares its family in its decorator: `@operation(…,
limit=Family.PROJECTS)`. It is counted once its caller is known: by user, or by IP address without a
token. The limit of all API requests (API_RATE_LIMIT) applies in addition. The headers report
whichever limit is closer to being exceeded.
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
    """Family of operations that are counted together."""

    #: Families for lists of users, and for single users.
    USERS = "users"
    USER = "user"
    #: Families for lists of projects, and for single projects.
    PROJECTS = "projects"
    PROJECT = "project"
    #: Families for lists of groups, for single groups, and for the projects of a group.
    GROUPS = "groups"
    GROUP = "group"
    GROUP_PROJECTS = "group_projects"
    #: Family for members of a project or group.
    MEMBERS = "members"
    #: Family for texts that are submitted to the release checker, including its page.
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
#: Settings of families that differ for callers without a token.
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
    """Count a search request, and raise 429 if it exceeds the search rate."""
    _SEARCHES.count()


def count_request(family: Family) -> None:
    """Count a request of a known caller, and raise 429 if it exceeds the family's rate."""
    is_anonymous = g.get("limited_user_id") is None
    limit = _ANONYMOUS_LIMITS.get(family) if is_anonymous else None
    (limit or _LIMITS[family]).count()
