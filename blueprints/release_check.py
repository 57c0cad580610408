"""/help/releases/check: the release checker for people, without signing in."""

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.errors import InvalidError
from domain.releases.checker.findings import Report
from forms.releases import ReleaseCheckForm
from web.access.api_limits import Family, count_request
from web.access.marks import open_to_anyone
from web.api.release_checks import handed_in, run_check
from web.extensions import csrf
from web.http.endpoints import PageBlueprint
from web.services import settings

release_check = PageBlueprint("release_check", __name__, url_prefix="/help/releases/check")


@release_check.get("")
@open_to_anyone
def show() -> ResponseReturnValue:
    """Show the form."""
    return _page(ReleaseCheckForm())


@release_check.post("")
@open_to_anyone.but(writes=False)
@csrf.exempt  # type: ignore[untyped-decorator]
def create() -> ResponseReturnValue:
    """Show what breaks. It changes nothing, so that a form of another site may lead here."""
    count_request(Family.RELEASE_CHECKS)
    try:
        given = handed_in()
    except InvalidError as error:
        return _refused(ReleaseCheckForm(), error)
    form = ReleaseCheckForm(given)
    if not form.validate():
        return _page(form), 400
    try:
        report = run_check(form.shown_name, form.text, form.target)
    except InvalidError as error:
        return _refused(form, error)
    return _page(form, report)


def _refused(form: ReleaseCheckForm, error: InvalidError) -> ResponseReturnValue:
    form.object_to(error.field, str(error))
    return _page(form), 400


def _page(form: ReleaseCheckForm, report: Report | None = None) -> str:
    form.content.data = ""  # it may hold secrets, and comes back to nobody
    return render_template(
        "help/release_check.html",
        form=form,
        report=report,
        limit=settings().release_check_limit_bytes,
    )
