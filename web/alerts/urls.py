"""URLs of alerts and incidents."""

from functools import cache

from flask import url_for

from web.http.public_urls import public_url


class _PageUrls:
    """The absolute URLs of numbered pages in one response; each project is routed once."""

    #: The endpoint of the list.
    endpoint: str

    def __init__(self) -> None:
        """Start without projects."""
        self._list_url = cache(self._route)

    def of(self, project_path: str, iid: int) -> str:
        """Return the URL of the page of a number."""
        return f"{self._list_url(project_path)}/{iid}"

    def _route(self, project_path: str) -> str:
        return public_url(url_for(self.endpoint, project_path=project_path))


class AlertUrls(_PageUrls):
    """The absolute URLs of the pages of alerts."""

    endpoint = "alerts.index"


class IncidentUrls(_PageUrls):
    """The absolute URLs of the pages of incidents."""

    endpoint = "incidents.index"
