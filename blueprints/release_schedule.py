"""/help/releases: the release schedule for people, without signing in."""

from collections.abc import Mapping, Sequence
from datetime import date

from flask import render_template, request
from flask.typing import ResponseReturnValue

from domain.api_usage.reading import changes_used_by
from domain.errors import NotFoundError
from domain.releases.changes import Certainty
from domain.releases.effects import effect_of
from domain.releases.examples import example_of
from domain.releases.listing import ChangeFilter, State, releases_on_schedule
from domain.releases.schedule import BY_ID
from domain.releases.version import Release
from forms.releases import ReleaseFilterForm
from web.access.marks import open_to_anyone, to_sign_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
from web.releases.dates import date_of
from web.releases.listed import ListedChange, list_shown, show_change
from web.releases.requested import running_release
from web.releases.usage import whole_period
from web.services import now, settings

release_schedule = PageBlueprint("release_schedule", __name__, url_prefix="/help/releases")
#: The filters that feeds have as well.
_FILTERS = ("release", "interface", "state")


@release_schedule.get("")
@open_to_anyone
def index() -> ResponseReturnValue:
    """List the changes by release, filtered by the form."""
    list_query(*_FILTERS, "used_by")
    form = ReleaseFilterForm()
    if form.used_by.data and not _is_signed_in():
        return to_sign_in()
    is_valid, used = form.validate(), _changes_of_viewer()
    listed = list_shown(form.wanted()) if is_valid else ()
    if form.used_by.data:
        listed = [each for each in listed if each.change.id in used]
    page = render_template(
        "help/releases.html",
        form=form,
        releases=_by_release(listed),
        running=running_release(),
        announced=len(list_shown(ChangeFilter(state=State.ANNOUNCED))),
        used=used,
        is_signed_in=_is_signed_in(),
        given={name: request.args[name] for name in _FILTERS if request.args.get(name)},
    )
    return page, 200 if is_valid else 400


@release_schedule.get("/<change_id>")
@open_to_anyone
def show(change_id: str) -> ResponseReturnValue:
    """Show a change, and how to try both sides of it."""
    change = BY_ID.get(change_id)
    if change is None:
        message = "This change is not on the release schedule."
        raise NotFoundError(message)
    return render_template(
        "help/release_change.html",
        listed=show_change(change),
        change=change,
        effect=effect_of(change),
        example=example_of(change),
        running=running_release(),
        used=_changes_of_viewer().get(change.id),
        base_url=settings().base_url,
    )


def _is_signed_in() -> bool:
    return viewer().user_id is not None


def _changes_of_viewer() -> Mapping[str, Certainty]:
    """Return the ids of the changes that calls of the viewer's tokens and applications use."""
    if not _is_signed_in():
        return {}
    moment = now()
    period = whole_period(settings(), moment)
    return changes_used_by(viewer(), period, session=db.session(), now=moment)


def _by_release(
    listed: Sequence[ListedChange],
) -> Sequence[tuple[Release, date | None, Sequence[ListedChange]]]:
    """Return changes under their releases, with the days of these."""
    return [
        (release, date_of(release), members)
        for release in releases_on_schedule()
        if (members := [each for each in listed if each.change.removal == release])
    ]
