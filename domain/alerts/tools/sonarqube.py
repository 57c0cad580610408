"""Rules for recognizing and reading messages from SonarQube."""

from domain.alerts.tools.base import INFO, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="SonarQube",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="serverUrl taskId status project.key",
    fields={
        "title": "project.name",
        "description": "qualityGate.name",
        "start_time": "analysedAt",
        # A failed analysis has no quality gate.
        "severity": "qualityGate.status status",
        "service": "project.key",
        "source_url": "branch.url project.url",
        "fingerprint": "project.key",
    },
    joins={"title": "branch.name qualityGate.status", "fingerprint": "serverUrl branch.name"},
    words={**dict.fromkeys(("error", "failed"), MEDIUM), "warn": LOW, "ok": INFO},
    resolved=(("qualityGate.status", IS, "ok"),),
    dropped=(("branch.type", IS, "pull_request"),),
    hint="Add a webhook in the administration, with the key in the URL.",
)
