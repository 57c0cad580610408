"""/api/v4/releases/usage: which scheduled changes concern one's tokens and applications."""

from flask import Blueprint

from domain.api_usage.reading import uses_of_instance, uses_of_person
from domain.errors import ForbiddenError
from domain.projects.views import Viewer
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.releases.api_usage import UsageQuery, UsageResource
from web.extensions import db
from web.releases.usage import whole_period
from web.services import now, settings

api_usage = Blueprint("api_usage", __name__, url_prefix="/releases/usage")


@api_usage.get("")
@operation("api_usage.index", query=UsageQuery, returns=UsageResource)
def index(query: UsageQuery, viewer: Viewer) -> Found[UsageResource]:
    """List the calls of the caller's tokens and applications that scheduled changes affect."""
    moment, session = now(), db.session()
    period = whole_period(settings(), moment)
    if query.scope == "mine":
        found = uses_of_person(viewer, period, session=session, now=moment)
    elif viewer.is_admin:
        found = uses_of_instance(period, session=session, now=moment)
    else:
        message = "Only administrators of the instance can see all calls."
        raise ForbiddenError(message)
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[UsageResource.of(each) for each in shown], total=len(found))
