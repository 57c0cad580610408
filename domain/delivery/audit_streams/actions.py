"""Actions of administrators on destinations of the audit log."""

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.core.types.base import Found
from domain.delivery.audit_streams.streams import AUDIT_STREAMS, message_of_test
from domain.delivery.audit_streams.types import (
    AuditStream,
    AuditStreamBody,
    AuditStreamChangeBody,
    NewAuditStream,
)
from domain.delivery.destination_actions import Changes, DestinationEvents
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody, SentTest
from domain.delivery.outgoing.destinations import DestinationDetails, NewSecret

_CHANGES = Changes(
    AUDIT_STREAMS,
    DestinationEvents(
        created=EventKind.AUDIT_STREAM_CREATED,
        changed=EventKind.AUDIT_STREAM_CHANGED,
        secret_rotated=EventKind.AUDIT_STREAM_SECRET_ROTATED,
        removed=EventKind.AUDIT_STREAM_REMOVED,
    ),
)


@question("audit_streams.index")
def list_streams(work: Work, query: DestinationQuery) -> Found[AuditStream]:
    """List the destinations of audit events."""
    return _CHANGES.list(work, query)


@question("audit_streams.show")
def show_stream(work: Work, stream_id: int) -> AuditStream:
    """Show a destination and the state of its delivery."""
    return _CHANGES.get(work, stream_id)


@action("audit_streams.create")
def create_stream(work: Work, new: AuditStreamBody) -> NewAuditStream:
    """Create a destination of audit events and return its secret once.

    No other response contains the secret.
    """
    details = DestinationDetails(url=new.url)
    return _with_secret(_CHANGES.create(work, details, is_paused=new.paused))


@action("audit_streams.change")
def change_stream(work: Work, stream_id: int, change: AuditStreamChangeBody) -> AuditStream:
    """Change the URL of a destination, or pause or resume it."""
    if change.url is not None:
        _CHANGES.change(work, stream_id, DestinationDetails(url=change.url))
    if change.paused is not None:
        (_CHANGES.pause if change.paused else _CHANGES.resume)(work, stream_id)
    return _CHANGES.get(work, stream_id)


@action("audit_streams.change", command="pause")
def pause_stream(work: Work, stream_id: int) -> AuditStream:
    """Pause a destination; its events are queued."""
    return _CHANGES.pause(work, stream_id)


@action("audit_streams.change", command="resume")
def resume_stream(work: Work, stream_id: int) -> AuditStream:
    """Resume a destination and send its waiting events."""
    return _CHANGES.resume(work, stream_id)


@action("audit_streams.rotate_secret", command="rotate")
def rotate_secret(work: Work, stream_id: int, rotation: SecretRotationBody) -> NewAuditStream:
    """Create a new signing secret, which overlaps with the old one.

    The old secret also signs until a chosen time.
    """
    return _with_secret(_CHANGES.rotate_secret(work, stream_id, rotation))


@action("audit_streams.send_test", command="test")
def send_test(work: Work, stream_id: int) -> SentTest:
    """Send a test event and return the result.

    The event is sent immediately.
    """
    message = message_of_test(work.actor, now=work.now)
    return SentTest.of(_CHANGES.send(work, stream_id, message))


@action("audit_streams.delete")
def delete_stream(work: Work, stream_id: int) -> AuditStream:
    """Delete a destination with its queued events.

    Queued events are never sent.
    """
    return _CHANGES.remove(work, stream_id)


def _with_secret(made: NewSecret[AuditStream]) -> NewAuditStream:
    return NewAuditStream(**dict(made.destination), secret=made.secret)
