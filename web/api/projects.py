"""Finds the project that an API address names, for the token that asks."""

from domain.accounts.roles import Role
from domain.audit.events import Actor
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.access import get_project_for
from domain.projects.references import project_path
from domain.projects.views import ProjectView, Viewer
from web.extensions import db


def project_of(reference: str, bearer: Bearer, *, at_least: Role) -> ProjectView:
    """Return the project of an id or a full path; raise Forbidden or NotFoundError."""
    session = db.session()
    path = project_path(reference, session=session)
    viewer = Viewer(user_id=bearer.user_id, is_admin=bearer.is_admin)
    return get_project_for(path, viewer, at_least=at_least, session=session)


def actor_of(bearer: Bearer) -> Actor:
    """Return who does what the token is used for."""
    return Actor(id=bearer.user_id, name=bearer.username)
