"""Rules for recognizing and reading messages from Kibana."""

from domain.alerts.tools.base import INFO, IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Kibana",
    uses_key_in_url=True,
    kind=ToolKind.LOGS,
    marks="alertActionGroupName signalId ruleName",
    fields={
        "title": "ruleName",
        "description": "tags",
        "start_time": "date",
        "fingerprint": "signalId",
    },
    words={"minimal": INFO},
    resolved=(("alertActionGroupName", IS, "recovered"),),
    # The connector's test message uses this identifier.
    dropped=(("signalId", IS, "test-alert"),),
    hint="Add a connector of the type xMatters with the key in the URL, and use it for alerts and "
    "for recovered alerts.",
)
