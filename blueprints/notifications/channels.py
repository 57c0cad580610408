"""/<project>/-/settings/channels: where a project as a whole is told of alerts."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.notifications.shared import add, empty_form, say_result
from domain.accounts.roles import Role
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError
from domain.notifications.contacts import Owner, list_contacts
from domain.projects.views import ProjectView
from forms.contact import ContactForm
from web.access.marks import project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.notifications import contacts as shared
from web.pages.list_query import list_query
from web.services import settings

channels = PageBlueprint(
    "channels", __name__, url_prefix="/<names:project_path>/-/settings/channels"
)
_ONE = f"/<int(max={LARGEST_ID}):channel_id>"


@channels.get("")
@project_member(at_least=Role.MAINTAINER)
def index(project: ProjectView) -> ResponseReturnValue:
    """Show the channels of a project."""
    list_query()
    return _show_page(project)


@channels.post("")
@project_member(at_least=Role.MAINTAINER)
def create(project: ProjectView) -> ResponseReturnValue:
    """Add a channel."""
    form = ContactForm()
    owner = Owner(project_id=project.id)
    if not (form.validate_on_submit() and add(form, owner, is_confirmed=True)):
        return _show_page(project, form)
    flash("Channel added. Send a test message to see that it arrives.")
    return _back(project)


@channels.post(f"{_ONE}/test", endpoint="send_test")
@project_member(at_least=Role.MAINTAINER)
def send_test_message(project: ProjectView, channel_id: int) -> ResponseReturnValue:
    """Send a test message, and say what came of it."""
    say_result(shared.send_test(channel_id, Owner(project_id=project.id)))
    return _back(project)


@channels.post(f"{_ONE}/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    try:
        gone = shared.delete(channel_id, Owner(project_id=project.id))
    except ConflictError as error:
        flash(str(error), "error")
    else:
        flash(f"The channel “{gone.label}” was deleted.")
    return _back(project)


def _show_page(project: ProjectView, form: ContactForm | None = None) -> ResponseReturnValue:
    form = form or empty_form()
    found = list_contacts(Owner(project_id=project.id), session=db.session())
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
