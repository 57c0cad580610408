"""What must become of each body that a real sender posted: written down beside it."""

import json
from typing import Any

from tests.support.alerts.senders import PAYLOADS

_ENDING = ".expected.json"

#: The bodies, by the names of their files.
NAMES = tuple(sorted(path.name for path in PAYLOADS.glob("*.*") if not path.name.endswith(_ENDING)))


def expected(name: str) -> dict[str, Any]:
    """Return the type of the integration, the status of the answer, and every alert."""
    path = (PAYLOADS / name).with_suffix(_ENDING)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
