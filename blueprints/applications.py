"""The user settings page 'applications': a user's own applications."""

from flask import render_template
from flask.typing import ResponseReturnValue

from blueprints.application_pages import ApplicationPages
from domain.oauth.clients.applications import get_own
from domain.oauth.clients.types import ApplicationView
from domain.oauth.clients.views import list_own
from forms.applications import ApplicationForm
from web.access.marks import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now

applications = PageBlueprint("applications", __name__, url_prefix="/-/user_settings/applications")


def _get_own(application_id: int) -> ApplicationView:
    return get_own(application_id, owner_id=get_current_user().id, session=db.session())


ApplicationPages(
    endpoint="applications", form=ApplicationForm, get=_get_own, is_administration=False
).bind(applications, signed_in)


@applications.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the user's applications."""
    mine = list_own(get_current_user().id, session=db.session(), now=now())
    return render_template("applications/index.html", applications=mine)
