"""Rules for recognizing and reading messages from Gatus with its custom provider.

The request body is the example in the documentation of Gatus.
"""

from domain.alerts.tools.base import CONTAINS_WORD, MappedTool, ToolKind

TOOL = MappedTool(
    name="Gatus (custom provider)",
    kind=ToolKind.UPTIME,
    marks="text",
    beginning=("text", "TRIGGERED: "),
    fields={"title": "text", "fingerprint": "text"},
    # The texts of a problem and of its recovery differ, so a recovery cannot be matched with its
    # alert.
    dropped=(("text", CONTAINS_WORD, "resolved: "),),
    hint="Use the provider gitlab in place of custom, because alerts from this body can only be "
    "resolved manually or after a time.",
)
