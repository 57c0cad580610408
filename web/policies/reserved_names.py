"""Names that groups and projects must not have."""

from urllib.parse import urlsplit

from domain.projects.namespace_changes import ReservedNames
from domain.projects.namespace_changes import list_reserved_names as first_parts
from web.services import get_settings

#: First segments of the service's URLs, which a test compares with the URL map. Commands need them
#: without loading any view.
_URL_FIRST_SEGMENTS = frozenset(
    {
        *(".well-known", "admin", "api", "groups", "healthz", "help", "jwt", "metrics", "oauth"),
        *("-", "manifest.webmanifest", "projects", "readyz", "service-worker.js", "static"),
        *("users", "v2"),
    }
)
#: Names that look like parts of the service, and files that browsers and robots request.
_FURTHER_RESERVED_NAMES = frozenset(
    {
        *("dashboard", "explore", "search"),
        *("robots.txt", "favicon.ico", "sitemap.xml"),
        *("apple-touch-icon.png", "apple-touch-icon-precomposed.png"),
    }
)
#: Names that top-level groups must not have, because they would conflict with URLs.
RESERVED_NAMES = _URL_FIRST_SEGMENTS | _FURTHER_RESERVED_NAMES


def get_reserved_names() -> ReservedNames:
    """Return the reserved names, including the first segment of the base path.

    If a group had the name `gate`, `/gate/shop` would be ambiguous, because a proxy may or may not
    strip the base path `/gate`.
    """
    base_path = urlsplit(get_settings().base_url).path
    return ReservedNames(RESERVED_NAMES | first_parts([base_path]))
