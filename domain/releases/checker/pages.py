"""Tells legacy URLs of pages from all others."""

import re

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
