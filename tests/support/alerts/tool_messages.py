"""Messages of known tools, and the alerts that the service reads from them.

`tests/payloads/messages/README.md` describes the files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.message_recognition import Recognition, recognize_messages
from domain.alerts.integrations.samples import MessageTexts
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import parse_mapping
from tests.support.alerts.senders import PAYLOADS

_FOLDER = PAYLOADS / "messages"
_NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)

#: Modules of `domain/alerts/tools/` that have a file with messages.
MODULES = sorted(file.stem for file in _FOLDER.glob("*.json"))


@dataclass(frozen=True, kw_only=True)
class ToolMessages:
    """Messages of a tool, and the values that are expected to be read from them."""

    tool: str
    #: Addresses of the documentation or source code that the messages are taken from.
    sources: list[str]
    note: str
    expected: Mapping[str, Any]
    firing: Any
    #: A later report of the same problem, and its recovery, or None if the tool sends none.
    repeat: Any
    recovery: Any
    #: Problems of other objects, as one message or several.
    other: Any = field(default_factory=list)
    #: Messages that do not open an alert, such as tests and acknowledgements.
    harmless: list[Any] = field(default_factory=list)

    def recognize(self) -> Recognition:
        """Return the proposal for all messages, as the page shows it."""
        return _recognize(self.firing, self.repeat, self.recovery)

    @property
    def others(self) -> list[Any]:
        """The problems of other objects."""
        return self.other if isinstance(self.other, list) else [self.other]

    @property
    def array(self) -> list[Any]:
        """The first message in an array, or the message itself if it is an array."""
        return self.firing if isinstance(self.firing, list) else [self.firing]

    @property
    def sample(self) -> str:
        """The first message as JSON. Of an array, it is the first object."""
        return json.dumps(self.array[0])

    def recognize_array(self) -> Recognition:
        """Return the proposal for the first message in an array."""
        return _recognize(self.array)

    def read(self, message: Any) -> tuple[IncomingAlert, ...]:
        """Return the alerts in a message that is read with the proposal for the first message."""
        proposal = _recognize(self.firing).proposal
        # The mapping is loaded as from the database.
        mapping = parse_mapping(json.loads(json.dumps(proposal.mapping.stored)))
        body = message
        if isinstance(message, dict):
            body = proposal.format.build_sample_body(message)
        return proposal.format.parse(body, now=_NOW, reading=_READING, mapping=mapping).alerts

    def read_one(self, message: Any) -> IncomingAlert:
        """Return the only alert in a message."""
        (alert,) = self.read(message)
        return alert


def _recognize(firing: Any, repeat: Any = None, recovery: Any = None) -> Recognition:
    texts = {
        name: json.dumps(message)
        for name, message in (("repeat", repeat), ("recovery", recovery))
        if message is not None
    }
    return recognize_messages(
        MessageTexts(sample=json.dumps(firing), **texts), now=_NOW, reading=_READING
    )


def load_messages(module: str) -> ToolMessages:
    """Return the messages of the tool that a module declares."""
    stored = json.loads((_FOLDER / f"{module}.json").read_text(encoding="utf-8"))
    return ToolMessages(**stored)
