"""Rules for recognizing and reading messages from Buildkite."""

from domain.alerts.tools.base import INFO, IS, IS_NOT, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Buildkite",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="event build.state build.branch pipeline.slug",
    fields={
        "title": "pipeline.name",
        "description": "build.message",
        "start_time": "build.finished_at",
        "severity": "build.state",
        "service": "pipeline.slug",
        "source_url": "build.web_url",
        "fingerprint": "pipeline.id",
    },
    joins={"title": "build.branch build.state", "fingerprint": "build.branch"},
    words={"failed": MEDIUM, "passed": INFO},
    resolved=(("build.state", IS, "passed"),),
    dropped=(
        ("event", IS_NOT, "build.finished"),
        ("build.state", IS_NOT, "failed, passed"),
    ),
    hint="Add a notification service of the type Webhook for build.finished with the key in the "
    "URL.",
)
