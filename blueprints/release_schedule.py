"""/help/releases: the release schedule for people, without signing in."""

from flask import render_template, request
from flask.typing import ResponseReturnValue

from domain.errors import NotFoundError
from domain.releases.effects import effect_of
from domain.releases.examples import example_of
from domain.releases.listing import ChangeFilter, State, releases_on_schedule
from domain.releases.schedule import BY_ID
from forms.release_filter import ReleaseFilterForm
from web.access.marks import open_to_anyone
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
from web.releases.dates import date_of
from web.releases.listed import list_shown, running_release, show_change
from web.services import settings

release_schedule = PageBlueprint("release_schedule", __name__, url_prefix="/help/releases")
_FILTERS = ("release", "interface", "state")


@release_schedule.get("")
@open_to_anyone
def index() -> ResponseReturnValue:
    """List the changes by release, filtered by the form."""
    list_query(*_FILTERS)
    form = ReleaseFilterForm()
    is_valid = form.validate()
    listed = list_shown(form.wanted()) if is_valid else ()
    page = render_template(
        "help/releases.html",
        form=form,
        releases=[
            (release, date_of(release), members)
            for release in releases_on_schedule()
            if (members := [each for each in listed if each.change.removal == release])
        ],
        running=running_release(),
        announced=len(list_shown(ChangeFilter(state=State.ANNOUNCED))),
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
        base_url=settings().base_url,
    )
