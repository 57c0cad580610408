"""/help: pages that errors link to."""

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.oauth.error_help import ERRORS
from web.access.marks import open_to_anyone
from web.http.endpoints import PageBlueprint

help_pages = PageBlueprint("help_pages", __name__, url_prefix="/help")


@help_pages.get("/errors")
@open_to_anyone
def errors() -> ResponseReturnValue:
    """Explain the errors of the OAuth endpoints."""
    return render_template("help/errors.html", errors=ERRORS)
