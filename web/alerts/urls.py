"""URLs of alerts."""

from functools import cache

from flask import url_for

from web.http.public_urls import public_url


class AlertUrls:
    """The absolute URLs of the pages of alerts in one response; each project is routed once."""

    def __init__(self) -> None:
        """Start without projects."""
        self._list_url = cache(self._route)

    def of(self, project_path: str, iid: int) -> str:
        """Return the URL of the page of a number."""
        return f"{self._list_url(project_path)}/{iid}"

    def _route(self, project_path: str) -> str:
        return public_url(url_for("alerts.index", project_path=project_path))
