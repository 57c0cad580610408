"""Legacy URLs of a project's pages: those without `/-/` after its path, until release 16.0."""

from collections.abc import Callable, Iterator

from flask import current_app, redirect, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from domain.releases.schedule import BY_ID
from web.http.public_urls import with_base_path
from web.releases.gate import apply_change

_CHANGE = BY_ID["legacy-page-urls"]
#: A project is in a group: its path has at least two parts.
_LEAST_PARTS = 2


def lead_on(path: str, *, sees_project: Callable[[str], bool]) -> ResponseReturnValue | None:
    """Redirect a legacy URL to its page; None for a path that is none, or of an unseen project.

    `path` has no slash before it. Raises NotFoundError from release 16.0 on.
    """
    for project, page in _candidates(path):
        if _is_page(page) and sees_project(project):
            apply_change(_CHANGE)
            query = request.query_string.decode("latin-1")
            return redirect(with_base_path(page) + (f"?{query}" if query else ""))
    return None


def _candidates(path: str) -> Iterator[tuple[str, str]]:
    """Yield each part of the path that can be a project's, and the URL with `/-/` after it."""
    parts = path.split("/")
    for count in range(_LEAST_PARTS, len(parts)):
        project = "/".join(parts[:count])
        yield project, f"/{project}/-/{'/'.join(parts[count:])}"


def _is_page(path: str) -> bool:
    adapter = current_app.create_url_adapter(request)
    if adapter is None:
        return False
    try:
        adapter.match(path, method="GET")
    except RequestRedirect:
        return True
    except HTTPException:
        return False
    return True
