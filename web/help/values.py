"""The reader's own values, which take the place of placeholders in documents.

A secret is never among them: its placeholder stays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

#: As documents write the base URL of an installation.
_BASE_URLS = r"https://gate\.example(?![\w-]|\.\w)|https://gatebell\.example\.com(?![\w-]|\.\w)"
_CALLBACK = "https://app.example/callback"
_PROJECT = "acme/shop"
#: Values of others go into commands: those with a character that a shell or a program could
#: understand are left out.
_HARMLESS = re.compile(r"[\w:/.\-~%\[\]]+", re.ASCII)
CLIENT_ID = "CLIENT_ID"
INTEGRATION_URL = "INTEGRATION_URL"


@dataclass(frozen=True, kw_only=True)
class Values:
    """What is known of a reader; None leaves the placeholder."""

    base_url: str
    client_id: str | None = None
    redirect_uri: str | None = None
    integration_url: str | None = None
    project_path: str | None = None

    def fill(self, text: str) -> str:
        """Return a text with these values in place of the placeholders."""
        known = self._by_placeholder()
        names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
        pattern = f"{_BASE_URLS}|{names}" if names else _BASE_URLS
        return re.sub(pattern, lambda found: known.get(found[0], self.base_url), text)

    def _by_placeholder(self) -> Mapping[str, str]:
        project = self.project_path
        given = {
            CLIENT_ID: self.client_id,
            _CALLBACK: self.redirect_uri,
            INTEGRATION_URL: self.integration_url,
            _PROJECT: project,
            quote(_PROJECT, safe=""): quote(project, safe="") if project else None,
        }
        return {
            name: value for name, value in given.items() if value and _HARMLESS.fullmatch(value)
        }
