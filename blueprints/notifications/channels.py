"""/<project>/-/settings/channels: where a project as a whole is told of alerts."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.notifications.shared import empty_form, say_result
from domain.contacts import actions
from domain.contacts.types import ContactQuery
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError
from domain.projects.views import ProjectView
from forms.contacts import ContactForm
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import list_query
from web.pages.refusals import refusals_shown
from web.services import settings

channels = PageBlueprint(
    "channels", __name__, url_prefix="/<names:project_path>/-/settings/channels"
)
_ONE = f"/<int(max={LARGEST_ID}):channel_id>"


@channels.get("")
@permitted("notification_channels.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """Show the channels of a project."""
    list_query()
    return _show_page(project)


@channels.post("")
@permitted("notification_channels.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Add a channel."""
    form = ContactForm()
    made = form.carry_out(lambda: actions.create_channel(work(), project, form.contact))
    if made is None:
        return _show_page(project, form)
    flash("Channel added. Send a test message to see that it arrives.")
    return _back(project)


@channels.post(f"{_ONE}/test", endpoint="send_test")
@permitted("notification_channels.send_test")
def send_test_message(project: ProjectView, channel_id: int) -> ResponseReturnValue:
    """Send a test message, and say what came of it."""
    say_result(actions.send_channel_test(work(), project, channel_id))
    return _back(project)


@channels.post(f"{_ONE}/delete")
@permitted("notification_channels.delete")
def delete(project: ProjectView, channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    with refusals_shown(ConflictError):
        gone = actions.delete_channel(work(), project, channel_id)
        flash(f"The channel “{gone.label}” was deleted.")
    return _back(project)


def _show_page(project: ProjectView, form: ContactForm | None = None) -> ResponseReturnValue:
    form = form or empty_form()
    found = actions.list_channels(work(), project, ContactQuery(per_page=100)).items
    page = render_template(
        "notifications/channels.html",
        project=project,
        contacts=found,
        form=form,
        sends_mail=bool(settings().mail_url),
    )
    return page, 422 if form.errors else 200


def _back(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("channels.index", project_path=project.path))
