"""/api/v4/projects/:id/silences: whose alerts page nobody, and until when."""

from flask import Blueprint

from domain.audit.events import Actor, EventKind
from domain.projects.views import ProjectView
from domain.silences import silences as domain
from domain.silences.preview import preview as look
from domain.silences.silences import SilenceState, SilenceView
from web.alerts.silences import longest_silence, record_silence, silence_url
from web.alerts.urls import AlertUrls
from web.api.operations import Found, operation
from web.api.schemas.silences.silences import (
    PreviewQuery,
    Silence,
    SilenceBody,
    SilenceChangeBody,
    SilencePreview,
    SilenceQuery,
)
from web.extensions import db
from web.services import now, reading

silences = Blueprint("silences", __name__, url_prefix="/projects/<path:reference>/silences")


def _present(project: ProjectView, view: SilenceView) -> Silence:
    return Silence.of(view, now=now(), web_url=silence_url(project.path, view.id))


@silences.get("")
@operation("silences.index", query=SilenceQuery, returns=Silence)
def index(project: ProjectView, query: SilenceQuery) -> Found[Silence]:
    """List silences."""
    state = SilenceState(query.state) if query.state else None
    found = domain.numbered_silences(project.id, state, query.part, session=db.session(), now=now())
    return Found.of(found, lambda view: _present(project, view))


@silences.get("/<int:silence_id>")
@operation("silences.show", returns=Silence)
def show(project: ProjectView, silence_id: int) -> Silence:
    """Show a silence."""
    return _present(project, domain.get_silence(project.id, silence_id, session=db.session()))


@silences.post("")
@operation("silences.create", body=SilenceBody, returns=Silence, status=201)
def create(project: ProjectView, body: SilenceBody, actor: Actor) -> Silence:
    """Create a silence."""
    made = domain.create_silence(
        project.id,
        body.wanted(now()),
        by=actor,
        longest=longest_silence(),
        session=db.session(),
        now=now(),
    )
    record_silence(EventKind.SILENCE_CREATED, project.path, made)
    return _present(project, made)


@silences.put("/<int:silence_id>")
@operation("silences.edit", body=SilenceChangeBody, returns=Silence)
def edit(project: ProjectView, silence_id: int, body: SilenceChangeBody) -> Silence:
    """Change the end or comment of a silence that has not ended."""
    changed = domain.change_silence(
        project.id,
        silence_id,
        body.wanted(now()),
        longest=longest_silence(),
        session=db.session(),
        now=now(),
    )
    record_silence(EventKind.SILENCE_CHANGED, project.path, changed)
    return _present(project, changed)


@silences.delete("/<int:silence_id>")
@operation("silences.delete")
def delete(project: ProjectView, silence_id: int, actor: Actor) -> None:
    """End a silence now; it stays in the list."""
    ended = domain.expire_silence(project.id, silence_id, by=actor, session=db.session(), now=now())
    record_silence(EventKind.SILENCE_EXPIRED, project.path, ended)


@silences.get("/preview")
@operation("silences.preview", query=PreviewQuery, returns=SilencePreview)
def preview(project: ProjectView, query: PreviewQuery) -> SilencePreview:
    """Show which alerts a silence would mute."""
    matchers = query.read
    domain.check_matchers(matchers)
    found = look(project.id, matchers, session=db.session(), reading=reading(), now=now())
    urls = AlertUrls()
    return SilencePreview.of(found, matchers, lambda iid: urls.of(project.path, iid))
