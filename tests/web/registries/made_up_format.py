"""A made-up alert format, which pytest loads as a plugin before everything else."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

from domain.alerts.formats.base import AlertFormat, Guide, ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.parsing.incoming_alert import (
    MissingAttributesError,
    ParsedBody,
    UnreadableBodyError,
)
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, FieldMapping
from domain.alerts.tools.base import MonitoringTool

_REGISTRY = "domain.alerts.formats.registry"
_LINE = "ON_CALL_TOOL_LINKS: tuple[OnCallToolLink, ...]"


class Lighthouse(AlertFormat):
    """Parses the ships that a lighthouse sees in danger."""

    name = "lighthouse"
    label = "Lighthouse"
    help = "Lighthouse takes what a keeper sees."

    guides = (Guide("curl", "The keeper's curl"),)
    body = dict[str, list[str]]
    media_types = ("text/x-lighthouse",)

    def list_tools(self) -> Sequence[MonitoringTool]:
        return (MonitoringTool(name="Pharos", marks="ships keeper", hint="Tell the keeper."),)

    def decode(self, body: bytes, *, reading: ParserSettings) -> object:
        """Read lines: the name of the keeper, and the ships."""
        del reading
        keeper, *ships = body.decode().splitlines()
        if not keeper.startswith("keeper "):
            raise UnreadableBodyError("The keeper is missing.")
        return {"keeper": keeper.removeprefix("keeper "), "ships": ships}

    def parse(
        self,
        value: object,
        *,
        now: datetime,
        reading: ParserSettings,
        mapping: FieldMapping = NO_FIELD_MAPPING,
    ) -> ParsedBody:
        """Read an alert for each ship."""
        del mapping
        ships = self.list_body_items(value)
        if not ships:
            raise MissingAttributesError(["ships"])
        alerts = [
            HTTP.parse(
                {"title": f"{ship} is in danger", "fingerprint": ship}, now=now, reading=reading
            ).alerts[0]
            for ship in ships
        ]
        return ParsedBody(
            alerts=tuple(replace(each, item_index=index) for index, each in enumerate(alerts)),
            refused=(),
            truncated_alerts=0,
            parse_warnings=(),
        )

    def list_body_items(self, value: object) -> Sequence[object]:
        """Return the ships."""
        ships = value.get("ships") if isinstance(value, dict) else None
        return ships if isinstance(ships, list) else ()

    def reduce_body_to_item(
        self, value: object, item_index: int, mapping: FieldMapping = NO_FIELD_MAPPING
    ) -> Mapping[str, object]:
        """Return the report about one ship."""
        del mapping
        return {"ships": [self.list_body_items(value)[item_index]]}

    def labels(self, value: object, item_index: int) -> tuple[object, ...]:
        """Return the name of the ship."""
        return ({"ship": self.list_body_items(value)[item_index]},)

    def build_example_body(self, *, now: datetime) -> str:
        """Return the lines about a ship."""
        del now
        return "keeper Sostratus\nArgo"

    def example(self, started: str) -> Mapping[str, Any]:
        """Return a ship."""
        return {"ships": ["Argo"], "keeper": "Sostratus", "since": started}


def _add() -> None:
    """Load the registry with one line changed."""
    spec = find_spec(_REGISTRY)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    assert _LINE in source
    module = module_from_spec(spec)
    sys.modules[_REGISTRY] = module
    vars(module)["LIGHTHOUSE"] = Lighthouse()
    exec(source.replace(_LINE, f"FORMATS = (*FORMATS, LIGHTHOUSE)\n{_LINE}"), vars(module))  # noqa: S102 - this repository's own text


_add()
