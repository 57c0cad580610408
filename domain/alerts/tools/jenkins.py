"""Rules for recognizing and reading messages from Jenkins with the Notification plugin."""

from domain.alerts.tools.base import INFO, IS, IS_MISSING, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Jenkins",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="name url build.number build.phase build.url",
    fields={
        "title": "name",
        "description": "build.notes build.log",
        "start_time": "build.timestamp",
        "severity": "build.status",
        "service": "url",
        "source_url": "build.full_url",
        "fingerprint": "url",
    },
    joins={"title": "build.scm.branch build.status", "fingerprint": "build.scm.branch"},
    words={"failure": MEDIUM, "unstable": LOW, "success": INFO},
    resolved=(("build.status", IS, "success"),),
    dropped=(
        ("build.status", IS_MISSING, "yes"),
        ("build.status", IS, "aborted, not_built"),
    ),
    hint="In the Notification plugin, add an endpoint with the format JSON, the event “Job "
    "Finalized” and the key in the URL.",
)
