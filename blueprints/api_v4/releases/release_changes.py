"""/api/v4/releases/changes: the release schedule for programs."""

from flask import Blueprint, after_this_request

from domain.oauth.presented_tokens.bearer import Bearer
from domain.types.base import Found
from web.api.operations import operation
from web.api.schemas.releases.release_changes import ReleaseChange, ReleaseChangeQuery
from web.releases.caching import let_everybody_cache
from web.releases.listed import list_shown

release_changes = Blueprint("release_changes", __name__, url_prefix="/releases/changes")


@release_changes.get("")
@operation("release_changes.index", query=ReleaseChangeQuery, returns=ReleaseChange)
def index(query: ReleaseChangeQuery, bearer: Bearer | None) -> Found[ReleaseChange]:
    """List the announced changes of interfaces, by release."""
    if bearer is None:
        after_this_request(let_everybody_cache)
    listed = list_shown(query.wanted)
    return Found(
        items=[ReleaseChange.of(each) for each in listed[query.offset :][: query.size]],
        total=len(listed),
    )
