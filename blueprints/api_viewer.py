"""/help/api: the description of the API to read and to try out."""

from collections.abc import Mapping
from itertools import groupby

from flask import current_app, render_template, url_for
from flask.typing import ResponseReturnValue

from web.access.marks import open_to_anyone
from web.api.description.views import DescribedView, described_views
from web.http.endpoints import PageBlueprint
from web.http.public_urls import public_url
from web.services import services
from web.settings.reader import Settings

# The authorization page opens in a window of its own, and leads back to this one.
api_viewer = PageBlueprint(
    "api_viewer", __name__, url_prefix="/help/api", leads_to_applications=True
)


@api_viewer.get("")
@open_to_anyone
def show() -> ResponseReturnValue:
    """Show the description; without scripts it is a list of all operations."""
    return render_template(
        "help/api.html",
        operations=services().live_settings.derived(_operations),
        callback=public_url(url_for("api_viewer.authorized")),
    )


@api_viewer.get("/authorized")
@open_to_anyone
def authorized() -> ResponseReturnValue:
    """Hand the code of an authorization to the page that asked for it; its redirect URI."""
    return render_template("help/authorized.html")


def _operations(settings: Settings) -> Mapping[str, list[DescribedView]]:
    """Return all operations by their subject."""
    del settings  # the URL map does not depend on them
    views = sorted(
        described_views(current_app), key=lambda each: (each.tag, each.path.template, each.method)
    )
    return {tag: list(found) for tag, found in groupby(views, key=lambda each: each.tag)}
