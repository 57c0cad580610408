"""The Git client of a user, without any configuration for the service."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS

_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Done:
    """Result of a Git command."""

    status: int
    #: Output, including errors.
    said: str


@dataclass(frozen=True, kw_only=True)
class GitClient:
    """Git with its own home and the credentials of a user."""

    gatebell: LiveGatebell
    home: Path
    token: str = field(default="", repr=False)
    username: str = "oauth2"
    options: tuple[str, ...] = ()
    #: Directories that are searched for programs first.
    programs: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def url(self, project: str) -> str:
        """Return the URL of a repository with the credentials in it."""
        scheme, _, rest = self.gatebell.url.partition("://")
        who = f"{quote(self.username, safe='')}:{quote(self.token, safe='')}@" if self.token else ""
        SECRETS.remember(self.token)
        return f"{scheme}://{who}{rest}/{project}.git"

    def environment(self) -> dict[str, str]:
        """Return the environment of the programs."""
        return {
            "PATH": os.pathsep.join([*map(str, self.programs), os.environ["PATH"]]),
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "Alice",
            "GIT_AUTHOR_EMAIL": "alice@people.example",
            "GIT_COMMITTER_NAME": "Alice",
            "GIT_COMMITTER_EMAIL": "alice@people.example",
            "LC_ALL": "C",
            "no_proxy": "*",
            **self.variables,
        }

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        """Start a command and return the running program."""
        self.home.mkdir(parents=True, exist_ok=True)
        running: subprocess.Popen[bytes] = subprocess.Popen(
            ["git", *self.options, *arguments],  # noqa: S607 - whichever Git there is
            env=self.environment(),
            cwd=self.home,
            **options,  # type: ignore[call-overload]
        )
        return running

    def run(self, *arguments: str) -> Done:
        """Run a command, which may fail."""
        running = self.start(
            *arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = running.communicate(timeout=_SECONDS)
        return Done(status=running.returncode, said=said.decode(errors="replace"))

    def do(self, *arguments: str) -> str:
        """Run a command that has to succeed, and return its output."""
        done = self.run(*arguments)
        assert done.status == 0, done.said
        return done.said

    def clone(self, project: str, *options: str, into: str = "clone") -> Path:
        """Clone a repository."""
        self.do("clone", *options, self.url(project), into)
        return self.home / into

    def new_work(
        self, files: dict[str, bytes], *, name: str = "work", branch: str = "main"
    ) -> Path:
        """Create a repository with one commit of these files."""
        work = self.home / name
        self.do("init", "--quiet", f"--initial-branch={branch}", str(work))
        self.commit(work, files, message="Begin")
        return work

    def commit(self, work: Path, files: dict[str, bytes], *, message: str) -> str:
        """Commit files, and return the hash of the commit."""
        for path, content in files.items():
            file = work / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        self.do("-C", str(work), "add", "--all")
        self.do("-C", str(work), "commit", "--quiet", "--message", message)
        return self.head(work)

    def push(self, work: Path, project: str, *refs: str) -> Done:
        """Push branches, by default `main`."""
        return self.run("-C", str(work), "push", self.url(project), *(refs or ("main",)))

    def head(self, work: Path) -> str:
        """Return the commit that is checked out."""
        return self.do("-C", str(work), "rev-parse", "HEAD").strip()
