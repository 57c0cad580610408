"""Finds the entries of the schedule for a path, in time that does not grow with the schedule.

Legacy URLs of pages have no entry for each: they are told by their form.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from domain.releases.changes import Call
from domain.releases.matching import Concern
from domain.releases.schedule import SCHEDULE

API = "/api/v4"
#: What stands in a path for a part that is known only when the program runs.
UNKNOWN = "\x00"
_API_VARIABLE = re.compile(
    r"\$(?:env:)?\{?CI_API_V4_URL\}?|\{\{ ?(?:api_url|gitlab_api(?:_url)?) ?\}\}"
)
_BASE_VARIABLE = re.compile(
    r"^\"?(?:\$\{?\w+\}?|\{\{ ?\w+ ?\}\})/(users|projects|groups|runners|jobs|user|application)\b"
)
#: Longer paths are no path of the schedule.
_MOST_SEGMENTS = 40


@dataclass
class _Node:
    """A segment of the paths of the schedule, with what may follow it."""

    named: dict[str, "_Node"] = field(default_factory=dict)
    variable: "_Node | None" = None
    concerns: list[Concern] = field(default_factory=list)

    def next_for(self, segment: str) -> Iterator["_Node"]:
        """Yield the nodes that a segment leads to."""
        if segment in self.named:
            yield self.named[segment]
        if self.variable is not None and segment:
            yield self.variable


@cache
def _tree() -> _Node:
    root = _Node()
    for change in SCHEDULE:
        for call in change.calls:
            # Paths with an open end are those of pages (`domain/releases/checker/routes.py`).
            if not call.path.endswith("*"):
                _leaf(root, segments_of(call.path)).concerns.append(Concern(change, call))
    return root


def _leaf(node: _Node, segments: Sequence[str]) -> _Node:
    for segment in segments:
        if segment.startswith(":"):
            node.variable = node.variable or _Node()
            node = node.variable
        else:
            node = node.named.setdefault(segment, _Node())
    return node


def segments_of(path: str) -> list[str]:
    """Return the segments of a path, without empty ones at its ends."""
    return path.strip("/").split("/", _MOST_SEGMENTS)


def concerns_of(path: str) -> list[Concern]:
    """Return the entries for a path, whatever the method is; more precise ones first."""
    nodes = [_tree()]
    for segment in segments_of(path):
        nodes = [following for node in nodes for following in node.next_for(segment)]
        if not nodes:
            return []
    return [concern for node in nodes for concern in node.concerns]


def resolved(url: str) -> str:
    """Return a URL with /api/v4 in place of the variables that mean its address.

    That is `$CI_API_V4_URL`, and any variable before a path that only the API has.
    """
    url = _API_VARIABLE.sub(API, url)
    if API in url:
        return url
    return _BASE_VARIABLE.sub(rf"{API}/\1", url)


def api_path(path: str) -> str | None:
    """Return the part of a path from /api/v4 on, or None."""
    at = path.find(f"{API}/")
    return None if at < 0 else path[at:]


def named_segments(call: Call) -> list[str]:
    """Return the segments of a path of the API that are no variables."""
    return [
        each for each in segments_of(call.path.removeprefix(API)) if each and each[0] not in ":*"
    ]


#: Pages of a project, whose URLs have `/-/` before this word.
_PAGES = (
    "activity|alert_management|alerts|artifacts|badges|blame|blob|boards|branches|builds|"
    "ci|clusters|commit|commits|compare|container_registry|cycle_analytics|deploy_keys|"
    "deployments|edit|environments|error_tracking|feature_flags|find_file|forks|graphs|"
    "hooks|import|incidents|issues|jobs|labels|logs|merge_requests|metrics|milestones|mirror|"
    "network|packages|pages|pipeline_schedules|pipelines|project_members|protected_branches|"
    "protected_tags|raw|refs|releases|repository|runners|security|serverless|services|settings|"
    "snippets|starrers|tags|terraform|tracing|tree|triggers|usage_quotas|value_stream_analytics|"
    "variables|web_ide|wikis"
)
#: First segments of what is no project.
_OTHERS = (
    r"-|\.well-known|admin|api|assets|dashboard|explore|files|groups|health_check|healthz|help|"
    "import|invites|jwt|login|metrics|oauth|profile|projects|public|readyz|registry|s|search|"
    "snippets|static|unsubscribes|uploads|user|users|v2"
)
_LEGACY = re.compile(
    rf"/(?!(?:{_OTHERS})/)[\w.][\w.-]*+(?:/(?!-/|(?:{_PAGES})(?:/|$))[\w.][\w.-]*+){{1,20}}+"
    rf"/(?:{_PAGES})(?:/.*)?",
    re.DOTALL,
)
#: Longer ones are no URLs of pages.
_LONGEST = 2_000


def is_legacy_page(path: str) -> bool:
    """Return whether a path is that of a page of a project without `/-/`."""
    if len(path) > _LONGEST or ".git/" in path or path.endswith(".git"):
        return False
    # The addresses of receivers are an interface, and stay as they are.
    return "/alerts/notify" not in path and _LEGACY.fullmatch(path) is not None
