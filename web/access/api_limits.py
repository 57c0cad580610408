"""Rate limits for common endpoints of users, projects and groups, each with its own setting.

An operation of the API declares its family in its decorator: `@declare_operation(…,
limit=RateLimitFamily.PROJECTS)`. A request is counted once its caller is known: by user, or by IP
address if there is no token. The limit for all API requests (API_RATE_LIMIT) also applies. The
headers report the limit that is closer to being exceeded.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from flask import g

from domain.releases.version import parse_release
from web.access.rate_limits import RateLimit
from web.http.extensions import get_limited_caller
from web.settings.kinds import get_rate_in_release
from web.settings.reader import Settings


class RateLimitFamily(Enum):
    """A family of operations that are counted together."""

    #: Operations on lists of users, and on single users.
    USERS = "users"
    USER = "user"
    #: Operations on lists of projects, and on single projects.
    PROJECTS = "projects"
    PROJECT = "project"
    #: Operations on lists of groups, on single groups, and on the projects of a group.
    GROUPS = "groups"
    GROUP = "group"
    GROUP_PROJECTS = "group_projects"
    #: Operations on the members of projects and groups.
    MEMBERS = "members"
    #: Runs of the release checker, including runs from its web page.
    RELEASE_CHECKS = "release_checks"


RateSetting = Callable[[Settings], str]

_RATE_SETTINGS: Mapping[RateLimitFamily, RateSetting] = {
    RateLimitFamily.USERS: lambda each: each.users_api_rate_limit,
    RateLimitFamily.USER: lambda each: each.user_api_rate_limit,
    RateLimitFamily.PROJECTS: lambda each: each.projects_api_rate_limit,
    RateLimitFamily.PROJECT: lambda each: each.project_api_rate_limit,
    RateLimitFamily.GROUPS: lambda each: each.groups_api_rate_limit,
    RateLimitFamily.GROUP: lambda each: each.group_api_rate_limit,
    RateLimitFamily.GROUP_PROJECTS: lambda each: each.group_projects_api_rate_limit,
    RateLimitFamily.MEMBERS: lambda each: each.members_api_rate_limit,
    RateLimitFamily.RELEASE_CHECKS: lambda each: each.release_check_rate_limit,
}
#: Rate settings for callers without a token, by family. Other families use the usual settings.
_ANONYMOUS_RATE_SETTINGS: Mapping[RateLimitFamily, RateSetting] = {
    RateLimitFamily.PROJECTS: lambda each: each.anonymous_projects_api_rate_limit,
}


def _build_limit(scope: str, setting: RateSetting) -> RateLimit:
    def rates(current: Settings) -> str:
        return get_rate_in_release(setting(current), parse_release(current.release))

    return RateLimit(rates, scope, get_limited_caller)


_LIMITS = {
    family: _build_limit(f"api_{family.value}", each) for family, each in _RATE_SETTINGS.items()
}
_ANONYMOUS_LIMITS = {
    family: _build_limit(f"api_anonymous_{family.value}", each)
    for family, each in _ANONYMOUS_RATE_SETTINGS.items()
}


_SEARCH_LIMIT = RateLimit(
    lambda each: f"{each.search_rate_limit}/minute" if each.search_rate_limit else "",
    "api_search",
    get_limited_caller,
)


def count_search_request() -> None:
    """Count a search request, and raise 429 if it exceeds the search rate."""
    _SEARCH_LIMIT.count_request()


def count_family_request(family: RateLimitFamily) -> None:
    """Count a request from a known caller, and raise 429 if it exceeds the family's rate."""
    is_anonymous = g.get("limited_user_id") is None
    limit = _ANONYMOUS_LIMITS.get(family) if is_anonymous else None
    (limit or _LIMITS[family]).count_request()
