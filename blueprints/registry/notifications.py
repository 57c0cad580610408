"""/api/v4/container_registry_event/events: notifications of the container registry."""

from flask import Response

from domain.registry.notifications import LARGEST_BODY, parse_envelope
from domain.registry.recording import record_events
from web.access.marks import checks_registry_secret
from web.api.description.described import HTML, JSON, REGISTRY, Caller, Description, described
from web.api.schemas.registry.registry_protocol import RegistryEnvelope
from web.extensions import db
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.request_bodies import check_media_type, read_bounded
from web.metrics import count_registry_events
from web.registry.notification_secrets import check_notification_secret
from web.services import now

registry_notifications = MachineBlueprint(
    "registry_notifications",
    __name__,
    url_prefix="/api/v4/container_registry_event",
    errors=ErrorFormat.MESSAGE,
)


@registry_notifications.post("/events")
@described(
    Description(
        name="registry.notification",
        tag=REGISTRY,
        caller=Caller.REGISTRY,
        body=RegistryEnvelope,
        accepts=(JSON,),
        content_type=HTML,
        errors=(400, 401, 408, 413, 415),
    )
)
@checks_registry_secret
def receive() -> Response:
    """Store events of the registry; events of unknown projects are only counted."""
    check_notification_secret()
    received = read_bounded(LARGEST_BODY)
    check_media_type()
    received.check()
    envelope = parse_envelope(received.content)
    outcomes = record_events(envelope.events, session=db.session(), now=now())
    count_registry_events({**outcomes, "ignored": envelope.left_out})
    return Response(status=200)
