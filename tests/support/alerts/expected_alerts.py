"""Expected alerts for each recorded body of a real sender, stored next to the body."""

import json
from typing import Any

from tests.support.alerts.senders import PAYLOADS

_ENDING = ".expected.json"

#: Names of the files with bodies.
NAMES = tuple(sorted(path.name for path in PAYLOADS.glob("*.*") if not path.name.endswith(_ENDING)))


def expected(name: str) -> dict[str, Any]:
    """Return the type of the integration, the status of the response, and all alerts."""
    path = (PAYLOADS / name).with_suffix(_ENDING)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
