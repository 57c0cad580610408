"""Gatus with the custom provider and the request body from its documentation."""

from domain.alerts.tools.base import CONTAINS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Gatus (custom provider)",
    kind=ToolKind.UPTIME,
    marks="text",
    beginning=("text", "TRIGGERED: "),
    fields={"title": "text", "fingerprint": "text"},
    # The texts of a problem and of its recovery differ, so a recovery cannot find its alert.
    dropped=(("text", CONTAINS, "resolved: "),),
    hint="Use the provider gitlab in place of custom, because alerts from this body can only be "
    "resolved manually or after a time.",
)
