"""User pages, which the `web_url` field of the API and the `profile` claim link to."""

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.accounts.profiles import build_avatar_path
from domain.projects.user_profiles import get_user_profile
from web.access.decorators import get_request_viewer, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.public_urls import add_base_path

users = PageBlueprint("users", __name__, url_prefix="/-/users")


@users.get("/<username>")
@sign_in_required
def show(username: str) -> ResponseReturnValue:
    """Show a user to members of the same groups and projects."""
    person = get_user_profile(username, get_request_viewer(), session=db.session())
    avatar = add_base_path(build_avatar_path(person.name or person.username, person.id))
    return render_template("users/show.html", person=person, avatar=avatar)
