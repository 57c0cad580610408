"""What is proposed for a payload of a monitoring tool."""

from pydantic import Field

from domain.alerts.integrations.recognition import Recognition
from domain.alerts.reading.mapping import AlertField
from domain.types.base import Body, Resource
from web.api.schemas.alerts.alert_integrations import IntegrationTypeName
from web.api.schemas.alerts.alert_mappings import MappingRulesBody, Path, ReadAlert, SampleField
from web.api.schemas.alerts.json_texts import JsonText


class RecognitionBody(Body):
    """What a monitoring tool posts."""

    sample: JsonText = Field(description="One body, or an array of them; at most 64 KiB.")


class AlertRecognition(Resource):
    """The tool that sent a payload, and the integration that would read it."""

    tool: str | None = Field(description="Null if no known tool posts this.")
    type: IntegrationTypeName = Field(description="Of the integration to create.")
    hint: str = Field(description="What to set in the tool; may be empty.")
    sample: str = Field(description="Of an array the first object; to be saved with the mapping,")
    mapping: dict[AlertField, tuple[Path, ...]] = Field(
        description="which for an unknown tool is guessed by the names of the keys,"
    )
    rules: MappingRulesBody = Field(description="and with its rules.")
    values: tuple[SampleField, ...] = Field(description="What the sample offers.")
    alert: ReadAlert | None = Field(
        description="The alert that the sample would open; null if a rule drops it."
    )
    never_resolves: str | None = Field(
        description="Why alerts that are read like this never resolve; null if they can."
    )
    resolves_seldom: str | None = Field(
        description="What a recovery has to repeat to find its alert, if that is a lot."
    )
    parse_warnings: tuple[str, ...]

    @classmethod
    def of(cls, found: Recognition) -> "AlertRecognition":
        """Present what was recognized."""
        proposal, preview = found.proposal, found.preview
        return cls(
            tool=proposal.tool,
            type=proposal.format.name,
            hint=proposal.hint,
            sample=found.sample.text,
            mapping=dict(proposal.mapping.paths),
            rules=MappingRulesBody.of(proposal.mapping.rules),
            values=tuple(map(SampleField.of, found.sample.values)),
            alert=ReadAlert.of(preview.alert) if preview.alert else None,
            never_resolves=preview.never_resolves,
            resolves_seldom=preview.resolves_seldom,
            parse_warnings=preview.parse_warnings,
        )
