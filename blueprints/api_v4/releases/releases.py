"""/api/v4/projects/:id/releases: releases of a project, with links to their files."""

from typing import Any

from flask import Blueprint

from domain.ci_cd import project_releases as domain
from domain.ci_cd.project_releases import LinkView, ReleaseDetails, ReleaseView
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.views import ProjectView
from domain.types.base import Body, Found
from web.api.operations import operation
from web.api.schemas.releases.releases import (
    LinkBody,
    LinkChange,
    LinkQuery,
    ProjectRelease,
    ReleaseBody,
    ReleaseChange,
    ReleaseLink,
    ReleaseQuery,
)
from web.extensions import db
from web.services import now

releases = Blueprint("releases", __name__, url_prefix="/projects/<path:reference>/releases")
_LINKS = "/<path:tag_name>/assets/links"
_LINK = f"{_LINKS}/<int:link_id>"


@releases.get("")
@operation("releases.index", query=ReleaseQuery, returns=ProjectRelease)
def index(project: ProjectView, query: ReleaseQuery) -> Found[ProjectRelease]:
    """List releases, latest first."""
    found = domain.list_releases(project.id, query.part, session=db.session())
    return Found.of(found, _presented)


@releases.get("/permalink/latest")
@operation("releases.latest", returns=ProjectRelease)
def latest(project: ProjectView) -> ProjectRelease:
    """Show the latest release."""
    return _presented(domain.get_latest(project.id, session=db.session()))


@releases.get("/<path:tag_name>")
@operation("releases.show", returns=ProjectRelease)
def show(project: ProjectView, tag_name: str) -> ProjectRelease:
    """Show the release of a tag."""
    return _presented(domain.get_release(project.id, tag_name, session=db.session()))


@releases.post("")
@operation("releases.create", body=ReleaseBody, returns=ProjectRelease, status=201)
def create(project: ProjectView, body: ReleaseBody, bearer: Bearer) -> ProjectRelease:
    """Create a release."""
    moment = now()
    details = ReleaseDetails(
        tag_name=body.tag_name,
        name=body.name or body.tag_name,
        description=body.description,
        ref=body.ref,
        released_at=body.released_at or moment,
        user_id=bearer.user_id,
        links=tuple(each.details for each in body.assets.links),
    )
    return _presented(domain.create_release(project.id, details, session=db.session(), now=moment))


@releases.put("/<path:tag_name>")
@operation("releases.edit", body=ReleaseChange, returns=ProjectRelease)
def edit(project: ProjectView, tag_name: str, body: ReleaseChange) -> ProjectRelease:
    """Change name, notes or time of a release."""
    return _presented(
        domain.change_release(project.id, tag_name, _given(body), session=db.session())
    )


@releases.delete("/<path:tag_name>")
@operation("releases.delete", returns=ProjectRelease)
def delete(project: ProjectView, tag_name: str) -> ProjectRelease:
    """Delete a release and its links, and return it; the tag stays."""
    return _presented(domain.delete_release(project.id, tag_name, session=db.session()))


@releases.get(_LINKS)
@operation("releases.list_links", query=LinkQuery, returns=ReleaseLink)
def list_links(project: ProjectView, tag_name: str, query: LinkQuery) -> Found[ReleaseLink]:
    """List the links of a release."""
    found = domain.get_release(project.id, tag_name, session=db.session()).links
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[_presented_link(each) for each in shown], total=len(found))


@releases.get(_LINK)
@operation("releases.show_link", returns=ReleaseLink)
def show_link(project: ProjectView, tag_name: str, link_id: int) -> ReleaseLink:
    """Show a link of a release."""
    return _presented_link(domain.get_link(project.id, tag_name, link_id, session=db.session()))


@releases.post(_LINKS)
@operation("releases.create_link", body=LinkBody, returns=ReleaseLink, status=201)
def create_link(project: ProjectView, tag_name: str, body: LinkBody) -> ReleaseLink:
    """Add a link to a release."""
    return _presented_link(
        domain.add_link(project.id, tag_name, body.details, session=db.session())
    )


@releases.put(_LINK)
@operation("releases.edit_link", body=LinkChange, returns=ReleaseLink)
def edit_link(project: ProjectView, tag_name: str, link_id: int, body: LinkChange) -> ReleaseLink:
    """Change a link of a release."""
    return _presented_link(
        domain.change_link(project.id, tag_name, link_id, _given(body), session=db.session())
    )


@releases.delete(_LINK)
@operation("releases.delete_link", returns=ReleaseLink)
def delete_link(project: ProjectView, tag_name: str, link_id: int) -> ReleaseLink:
    """Delete a link of a release, and return it."""
    return _presented_link(domain.delete_link(project.id, tag_name, link_id, session=db.session()))


def _given(body: Body) -> dict[str, Any]:
    """Return what a request changes."""
    return body.model_dump(exclude_unset=True, exclude_none=True)


def _presented(view: ReleaseView) -> ProjectRelease:
    return ProjectRelease.of(view, now=now())


def _presented_link(view: LinkView) -> ReleaseLink:
    return ReleaseLink.of(view)
