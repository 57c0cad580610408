"""A user's machine with git-credential-oauth and the browser that it opens."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

import requests

from tests.support.git.client import Done, GitClient
from tests.support.oauth.oauth_wire import open_and_follow, submit_decision
from tests.support.service.live import ROOT
from tests.support.service.secrets_seen import SECRETS

#: Folder that scripts/ensure-git-clients fills.
_UNPACKED = ROOT / ".git-clients"
HELPER = _UNPACKED / "helper"
#: A newer Git that passes refresh tokens to helpers, which 2.41 introduced.
NEWER_GIT = _UNPACKED / "git"
#: Commands that git-credential-oauth runs on Linux and on macOS.
_BROWSERS = ("xdg-open", "open")
#: Program that writes the URL into a file for the test and exits, as with a browser that already
#: runs.
_OPEN = '#!/bin/sh\nprintf %s "$1" >"$HOME/opened.new" && mv "$HOME/opened.new" "$HOME/opened"\n'
_SECONDS = 60
#: Commands in the documentation.
_COMMANDS = re.compile(r"```sh\n(git credential-oauth configure\n.*?)```", re.DOTALL)

#: Function that acts as the user in the browser, from the opened URL.
Visit = Callable[[str], None]


def is_installed() -> bool:
    """Return whether scripts/ensure-git-clients has installed both programs."""
    try:
        done = subprocess.run([str(NEWER_GIT / "git"), "version"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and (HELPER / "git-credential-oauth").exists()


@dataclass(frozen=True, kw_only=True)
class Told(Done):
    """Result of a Git command that may open a browser."""

    #: True if a browser was opened.
    has_opened: bool


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine with Git, git-credential-oauth, and a browser in which a user is signed in."""

    git: GitClient
    browser: requests.Session

    @property
    def host(self) -> str:
        """The host and port of the service."""
        return urlsplit(self.git.gatebell.url).netloc

    def set_up(self, application_id: str) -> None:
        """Run the setup commands of docs/git.md."""
        self._install_browser()
        document = (ROOT / "docs" / "git.md").read_text(encoding="utf-8")
        found = _COMMANDS.search(document)
        assert found, "docs/git.md has no commands for git-credential-oauth"
        commands = found[1].replace("https://gate.example", self.git.gatebell.url)
        commands = commands.replace("<application ID>", application_id)
        subprocess.run(
            ["/bin/sh", "-eu", "-c", commands],
            env=self.git.environment(),
            cwd=self.git.home,
            check=True,
            capture_output=True,
        )

    def configure(self, name: str, value: str) -> None:
        """Change a setting of Git for the service."""
        key = f"credential.{self.git.gatebell.url}.{name}"
        self.git.do("config", "--global", "--replace-all", key, value)

    def run(self, *arguments: str, visit: Visit | None = None) -> Told:
        """Run Git, and approve the request if a browser is opened."""
        said = self.git.home / "said"
        with said.open("wb") as output:
            running = self.git.start(
                *arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        opened = self._opened(running)
        if opened:
            (visit or self.approve)(opened)
        status = running.wait(_SECONDS)
        text = said.read_text(encoding="utf-8", errors="replace")
        return Told(status=status, said=text, has_opened=bool(opened))

    def approve(self, url: str) -> None:
        """Approve the application, and follow the redirect to the helper."""
        self.come_back(submit_decision(self.browser, open_and_follow(self.browser, url)))

    def deny(self, url: str) -> None:
        """Deny the application, and follow the redirect to the helper."""
        self.come_back(submit_decision(self.browser, open_and_follow(self.browser, url), "deny"))

    def come_back(self, answer: requests.Response) -> None:
        """Follow a redirect to the helper, which shows that the user can return to Git."""
        page = self.browser.get(answer.headers["Location"])
        assert "You may close this page and return to Git" in page.text

    def kept(self) -> dict[str, str]:
        """Return the cached credentials, as the cache passes them to Git."""
        asked = f"protocol={urlsplit(self.git.gatebell.url).scheme}\nhost={self.host}\n\n"
        lines = self._cache("get", asked).splitlines()
        found = dict(line.split("=", 1) for line in lines)
        SECRETS.remember(found.get("password", ""))
        SECRETS.remember(found.get("oauth_refresh_token", ""))
        return found

    def keep(self, **changes: str) -> None:
        """Change the cached credentials."""
        scheme = urlsplit(self.git.gatebell.url).scheme
        fields = {"protocol": scheme, "host": self.host, **self.kept(), **changes}
        lines = "".join(f"{name}={value}\n" for name, value in fields.items())
        self._cache("store", lines + "\n")

    def leave(self) -> None:
        """Stop the cache, as at the end of a working day."""
        self.git.run("credential-cache", "exit")

    def with_git(self, *programs: Path) -> "Machine":
        """Return the machine with other programs first in the path."""
        return replace(self, git=replace(self.git, programs=programs))

    def _cache(self, action: str, said: str) -> str:
        running = self.git.start(
            "credential-cache", action, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        output, _ = running.communicate(said.encode(), timeout=_SECONDS)
        return output.decode()

    def _install_browser(self) -> None:
        directory = self.git.home / "bin"
        directory.mkdir(parents=True)
        for name in _BROWSERS:
            (directory / name).write_text(_OPEN)
            (directory / name).chmod(0o755)

    def _opened(self, running: subprocess.Popen[bytes]) -> str:
        """Return the URL that the helper opens, or an empty text if Git exits without it."""
        file = self.git.home / "opened"
        deadline = monotonic() + _SECONDS
        while not file.exists():
            if running.poll() is not None:
                return ""
            assert monotonic() < deadline, "neither did Git end nor was a browser opened"
            sleep(0.02)
        url = file.read_text()
        file.unlink()
        return url
