"""The pages of users. The field `web_url` and the claim `profile` link to them."""

from flask import render_template
from flask.typing import ResponseReturnValue

from domain.accounts.profiles import avatar_path
from domain.projects.people import get_person
from web.access.decorators import signed_in, viewer
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.public_urls import with_base_path

users = PageBlueprint("users", __name__, url_prefix="/-/users")


@users.get("/<username>")
@signed_in
def show(username: str) -> ResponseReturnValue:
    """Show a user to members of the same groups and projects."""
    person = get_person(username, viewer(), session=db.session())
    avatar = with_base_path(avatar_path(person.name or person.username, person.id))
    return render_template("users/show.html", person=person, avatar=avatar)
