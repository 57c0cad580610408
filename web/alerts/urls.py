"""URLs of alerts."""

from flask import url_for

from web.http.public_urls import public_url


def alert_url(project_path: str, iid: int) -> str:
    """Return the absolute URL of the page of an alert."""
    return public_url(url_for("alerts.show", project_path=project_path, iid=iid))
