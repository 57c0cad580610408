"""/api/v4/audit_streams: destinations of the audit log, for administrators."""

from dataclasses import replace

from flask import Blueprint

from domain.audit.events import Actor
from domain.audit.streaming.destinations import list_streams
from web.api.operations import Found, operation
from web.api.schemas.instance.audit_streams import (
    AuditStream,
    AuditStreamBody,
    AuditStreamChangeBody,
    AuditStreamQuery,
    NewAuditStream,
    SecretRotationBody,
)
from web.api.schemas.webhooks.sent_tests import SentTest
from web.audit import streams
from web.extensions import db
from web.services import now

audit_streams = Blueprint("audit_streams", __name__, url_prefix="/audit_streams")


@audit_streams.get("")
@operation("audit_streams.index", query=AuditStreamQuery, returns=AuditStream)
def index(query: AuditStreamQuery) -> Found[AuditStream]:
    """List the destinations of audit events."""
    found = list_streams(session=db.session(), now=now())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[AuditStream.of(each) for each in shown], total=len(found))


@audit_streams.post("")
@operation("audit_streams.create", body=AuditStreamBody, returns=NewAuditStream, status=201)
def create(body: AuditStreamBody) -> NewAuditStream:
    """Create a destination; only this response contains its secret."""
    made = streams.create(body.url)
    if body.paused:
        made = replace(made, stream=streams.pause(made.stream.id))
    return NewAuditStream.with_secret(made)


@audit_streams.get("/<int:stream_id>")
@operation("audit_streams.show", returns=AuditStream)
def show(stream_id: int) -> AuditStream:
    """Show a destination and the state of its delivery."""
    return AuditStream.of(streams.get(stream_id))


@audit_streams.put("/<int:stream_id>")
@operation("audit_streams.change", body=AuditStreamChangeBody, returns=AuditStream)
def change(stream_id: int, body: AuditStreamChangeBody) -> AuditStream:
    """Change the URL of a destination, pause or resume it."""
    if body.url is not None:
        streams.change_url(stream_id, body.url)
    if body.paused is not None:
        (streams.pause if body.paused else streams.resume)(stream_id)
    return AuditStream.of(streams.get(stream_id))


@audit_streams.delete("/<int:stream_id>")
@operation("audit_streams.delete")
def delete(stream_id: int) -> None:
    """Delete a destination; events that are waiting for it are never sent."""
    streams.remove(stream_id)


@audit_streams.post("/<int:stream_id>/rotate_secret")
@operation(
    "audit_streams.rotate_secret", body=SecretRotationBody, returns=NewAuditStream, status=201
)
def rotate_secret(stream_id: int, body: SecretRotationBody) -> NewAuditStream:
    """Create a new secret; the old one signs beside it until a chosen time."""
    made = streams.rotate(stream_id, previous_until=body.previous_secret_expires_at)
    return NewAuditStream.with_secret(made)


@audit_streams.post("/<int:stream_id>/test")
@operation("audit_streams.send_test", returns=SentTest)
def send_test(stream_id: int, actor: Actor) -> SentTest:
    """Send a test event immediately, and return the result."""
    return SentTest.of(streams.send_test(stream_id, actor))
