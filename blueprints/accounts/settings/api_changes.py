"""The user settings page for API changes that affect the user's tokens and applications."""

from itertools import groupby

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.releases.usage.usage_reports import find_user_usage
from web.access.decorators import get_request_viewer, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import get_list_query
from web.releases.rehearsal import build_full_usage_period
from web.services import get_current_time, get_settings

api_changes = PageBlueprint("api_changes", __name__, url_prefix="/-/user_settings/api_changes")


@api_changes.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """List the scheduled API changes that affect the user's tokens and applications."""
    get_list_query()
    current, moment = get_settings(), get_current_time()
    period = build_full_usage_period(current, moment)
    uses = find_user_usage(get_request_viewer(), period, session=db.session(), now=moment)
    changes = [(change, list(some)) for change, some in groupby(uses, lambda use: use.change)]
    return render_template(
        "api_usage/index.html",
        changes=changes,
        running=period.running,
        keep_days=current.call_keep_days,
    )
