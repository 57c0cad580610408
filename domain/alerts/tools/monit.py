"""Rules for recognizing and reading messages from Monit."""

from domain.alerts.tools.base import CONTAINS_WORD, IS, MappedTool, ToolKind

_RECOVERY_EVENTS = "exists, timeout recovery, data access succeeded"

TOOL = MappedTool(
    name="Monit",
    kind=ToolKind.NETWORK,
    marks="MONIT_SERVICE MONIT_EVENT",
    fields={
        "title": "MONIT_SERVICE",
        "description": "MONIT_DESCRIPTION",
        "service": "MONIT_SERVICE",
        "hosts": "MONIT_HOST",
        "fingerprint": "MONIT_HOST",
    },
    joins={"title": "MONIT_EVENT", "fingerprint": "MONIT_SERVICE"},
    resolved=(
        ("MONIT_EVENT", IS, _RECOVERY_EVENTS),
        ("MONIT_EVENT", CONTAINS_WORD, "succeeded"),
    ),
    hint="Post the variables of Monit as JSON with “exec”.",
)
