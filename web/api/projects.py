"""Finds the project of an API path, with the permissions of the token."""

from domain.accounts.roles import Role
from domain.audit.events import Actor
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.access import get_project_for
from domain.projects.references import project_path
from domain.projects.views import ProjectView, Viewer
from web.extensions import db


def project_of(reference: str, bearer: Bearer, *, at_least: Role) -> ProjectView:
    """Return the project with an id or a full path; raise ForbiddenError or NotFoundError."""
    session = db.session()
    path = project_path(reference, session=session)
    viewer = Viewer(user_id=bearer.user_id, is_admin=bearer.is_admin)
    return get_project_for(path, viewer, at_least=at_least, session=session)


def actor_of(bearer: Bearer) -> Actor:
    """Return the actor for actions with a token."""
    return Actor(id=bearer.user_id, name=bearer.username)
