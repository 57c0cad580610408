"""Guides with the values of a reader filled in: texts and blocks of code."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from blueprints.help.documents import GuideValues, load_documents
from tests.support.accounts.people import ClientCredentials
from tests.support.alerts.senders import Endpoint
from tests.support.service.live import LiveGatebell

_SCRIPT_SECONDS = 120
_BASH = shutil.which("bash") or "bash"


@dataclass(frozen=True)
class Guide:
    """A guide and its reader."""

    name: str
    values: GuideValues
    #: Secret key, which /help does not fill in.
    key: str = "INTEGRATION_KEY"

    def block(self, name: str) -> str:
        """Return the block of code with this name after its language."""
        return self.values.replace_placeholders(_blocks(self.name)[name]).replace(
            "INTEGRATION_KEY", self.key
        )

    @property
    def text(self) -> str:
        """The guide in Markdown."""
        return load_documents()[self.name].text

    def run_shell(self, name: str, folder: Path = Path(), /, **environment: str) -> str:
        """Run a block in a shell in a folder, as a reader would; return its output."""
        done = subprocess.run(
            [_BASH, "-euo", "pipefail", "-c", self.block(name)],
            cwd=folder,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "no_proxy": "*", **environment},
            capture_output=True,
            text=True,
            timeout=_SCRIPT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, name: str, folder: Path, title: str = "") -> Path:
        """Write a block into a file."""
        file = folder / (title or name)
        file.write_text(self.block(name), encoding="utf-8")
        return file


def guide_for_application(name: str, gatebell: LiveGatebell, client: ClientCredentials) -> Guide:
    """Return a guide with the values of an application."""
    return Guide(
        f"guides/{name}",
        GuideValues(
            base_url=gatebell.url, client_id=client.client_id, redirect_uri=client.redirect_uri
        ),
    )


def guide_for_project(name: str, gatebell: LiveGatebell, project: str) -> Guide:
    """Return a guide with the path of a project."""
    return Guide(f"guides/{name}", GuideValues(base_url=gatebell.url, project_path=project))


def guide_for_integration(name: str, endpoint: Endpoint) -> Guide:
    """Return a guide with the values of an integration."""
    values = GuideValues(
        base_url=endpoint.service, integration_url=endpoint.url, project_path=endpoint.project
    )
    return Guide(f"guides/{name}", values, endpoint.key)


def _blocks(name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for token in MarkdownIt("commonmark").parse(load_documents()[name].text):
        _language, _, title = token.info.partition(" ")
        if token.type == "fence" and title:
            assert title not in found, title
            found[title] = token.content
    return found
