"""Rules for recognizing and reading AWS Health events sent through EventBridge."""

from domain.alerts.tools.base import HIGH, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="AWS Health",
    kind=ToolKind.CLOUD,
    marks="detail-type source detail.eventArn detail.eventTypeCategory",
    fields={
        "title": "detail.eventTypeCode",
        "description": "detail.eventDescription.0.latestDescription",
        "start_time": "detail.startTime",
        "end_time": "detail.endTime",
        "severity": "detail.eventTypeCategory",
        "service": "detail.service",
        "hosts": "resources",
        "fingerprint": "detail.eventArn",
    },
    # An event has the same ARN in all accounts that it affects.
    joins={"title": "detail.eventRegion", "fingerprint": "detail.affectedAccount"},
    words={"issue": HIGH, "investigation": MEDIUM, "scheduledchange": LOW},
    resolved=(("detail.statusCode", IS, "closed"),),
    dropped=(("detail.eventTypeCategory", IS, "accountNotification"),),
    hint="Send “AWS Health Event” events from EventBridge to an API destination with the key as a "
    "Bearer token.",
)
