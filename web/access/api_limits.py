"""Rate limits for common endpoints of users, projects and groups, each with its own setting.

The decorator of an API operation selects a rate limit group:
`@declare_operation(…, limit=RateLimitGroup.PROJECTS)`. A request is counted once its caller is
known: by user, or by IP address if there is no token. The limit for all API requests
(API_RATE_LIMIT) also applies. The headers report the limit that is closer to being exceeded.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from flask import g

from domain.releases.version import parse_release
from web.access.rate_limits import RateLimit
from web.http.extensions import get_rate_limit_key
from web.settings.environment import Settings
from web.settings.kinds import get_rate_in_release


class RateLimitGroup(Enum):
    """A group of API operations whose requests are counted together."""

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

_RATE_SETTINGS: Mapping[RateLimitGroup, RateSetting] = {
    RateLimitGroup.USERS: lambda each: each.users_api_rate_limit,
    RateLimitGroup.USER: lambda each: each.user_api_rate_limit,
    RateLimitGroup.PROJECTS: lambda each: each.projects_api_rate_limit,
    RateLimitGroup.PROJECT: lambda each: each.project_api_rate_limit,
    RateLimitGroup.GROUPS: lambda each: each.groups_api_rate_limit,
    RateLimitGroup.GROUP: lambda each: each.group_api_rate_limit,
    RateLimitGroup.GROUP_PROJECTS: lambda each: each.group_projects_api_rate_limit,
    RateLimitGroup.MEMBERS: lambda each: each.members_api_rate_limit,
    RateLimitGroup.RELEASE_CHECKS: lambda each: each.release_check_rate_limit,
}
#: Rate settings for callers without a token, by family. Other families use `_RATE_SETTINGS`.
_ANONYMOUS_RATE_SETTINGS: Mapping[RateLimitGroup, RateSetting] = {
    RateLimitGroup.PROJECTS: lambda each: each.anonymous_projects_api_rate_limit,
}


def _build_limit(scope: str, setting: RateSetting) -> RateLimit:
    def get_rates(current: Settings) -> str:
        return get_rate_in_release(setting(current), parse_release(current.release))

    return RateLimit(get_rates, scope, get_rate_limit_key)


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
    get_rate_limit_key,
)


def count_search_request() -> None:
    """Count a search request.

    Raise TooManyRequests (429) if the rate limit for searches is exceeded.
    """
    _SEARCH_LIMIT.count_request()


def count_rate_limited_request(family: RateLimitGroup) -> None:
    """Count a request from a known caller.

    Raise TooManyRequests (429) if the limit of the rate limit group is exceeded.
    """
    is_anonymous = g.get("limited_user_id") is None
    limit = _ANONYMOUS_LIMITS.get(family) if is_anonymous else None
    (limit or _LIMITS[family]).count_request()
