"""Actions on the destinations of the audit log, for administrators."""

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.types.pagination import ListPage
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND, build_test_message
from domain.delivery.audit_streams.types import (
    AuditStream,
    AuditStreamBody,
    AuditStreamChangeBody,
    NewAuditStream,
)
from domain.delivery.destination_actions import DestinationActions, DestinationEventKinds
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody, SentTest
from domain.delivery.outgoing.destinations import DestinationDetails, DestinationWithSecret

_STREAM_ACTIONS = DestinationActions(
    AUDIT_STREAM_KIND,
    DestinationEventKinds(
        created=EventKind.AUDIT_STREAM_CREATED,
        changed=EventKind.AUDIT_STREAM_CHANGED,
        secret_rotated=EventKind.AUDIT_STREAM_SECRET_ROTATED,
        removed=EventKind.AUDIT_STREAM_REMOVED,
    ),
)


@read_action("audit_streams.index")
def list_streams(work: UnitOfWork, query: DestinationQuery) -> ListPage[AuditStream]:
    """List the destinations for audit events."""
    return _STREAM_ACTIONS.list_destinations(work, query)


@read_action("audit_streams.show")
def show_stream(work: UnitOfWork, stream_id: int) -> AuditStream:
    """Show a destination and its delivery status."""
    return _STREAM_ACTIONS.get_destination(work, stream_id)


@action("audit_streams.create")
def create_stream(work: UnitOfWork, new: AuditStreamBody) -> NewAuditStream:
    """Create a destination for audit events and return its secret.

    No other response contains the secret.
    """
    details = DestinationDetails(url=new.url)
    return _build_new_stream(
        _STREAM_ACTIONS.create_destination(work, details, is_paused=new.paused)
    )


@action("audit_streams.change")
def change_stream(work: UnitOfWork, stream_id: int, change: AuditStreamChangeBody) -> AuditStream:
    """Change the URL of a destination, or pause or resume it."""
    if change.url is not None:
        _STREAM_ACTIONS.change_destination(work, stream_id, DestinationDetails(url=change.url))
    if change.paused is not None:
        (
            _STREAM_ACTIONS.pause_destination
            if change.paused
            else _STREAM_ACTIONS.resume_destination
        )(work, stream_id)
    return _STREAM_ACTIONS.get_destination(work, stream_id)


@action("audit_streams.change", command="pause")
def pause_stream(work: UnitOfWork, stream_id: int) -> AuditStream:
    """Pause a destination.

    New events are queued until the destination is resumed.
    """
    return _STREAM_ACTIONS.pause_destination(work, stream_id)


@action("audit_streams.change", command="resume")
def resume_stream(work: UnitOfWork, stream_id: int) -> AuditStream:
    """Resume a destination and send its waiting events."""
    return _STREAM_ACTIONS.resume_destination(work, stream_id)


@action("audit_streams.rotate_secret", command="rotate")
def rotate_secret(work: UnitOfWork, stream_id: int, rotation: SecretRotationBody) -> NewAuditStream:
    """Create a new signing secret for a destination.

    Events are also signed with the old secret until a chosen time.
    """
    return _build_new_stream(_STREAM_ACTIONS.rotate_secret(work, stream_id, rotation))


@action("audit_streams.send_test", command="test")
def send_test(work: UnitOfWork, stream_id: int) -> SentTest:
    """Send a test event and return the result.

    The event is sent immediately.
    """
    message = build_test_message(work.actor, now=work.now)
    return SentTest.from_result(_STREAM_ACTIONS.send_message(work, stream_id, message))


@action("audit_streams.delete")
def delete_stream(work: UnitOfWork, stream_id: int) -> AuditStream:
    """Delete a destination and its queued events.

    Queued events are never sent.
    """
    return _STREAM_ACTIONS.delete_destination(work, stream_id)


def _build_new_stream(
    destination_with_secret: DestinationWithSecret[AuditStream],
) -> NewAuditStream:
    return NewAuditStream(
        **dict(destination_with_secret.destination), secret=destination_with_secret.secret
    )
