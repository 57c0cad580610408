"""Which Gatebell this is: the version of pyproject.toml and, where it is known, the commit.

A version between two releases ends with `.dev0`, so that only the commit tells two of them apart.
"""

import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PATIENCE_SECONDS = 5
#: Of a commit as it is shown.
_SHOWN = 12


@dataclass(frozen=True)
class Build:
    """A version of the code."""

    version: str
    #: The commit in full; empty where nothing tells it.
    revision: str

    def __str__(self) -> str:
        """Return it for people: `0.2.0 (1f2e3d4c5b6a)`."""
        return f"{self.version} ({self.revision[:_SHOWN]})" if self.revision else self.version


@cache
def running_build() -> Build:
    """Return what this process runs."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Build(version=project["version"], revision=_commit(_ROOT))


def _commit(root: Path) -> str:
    """Return the commit that an archive or an image notes, or else that of the checkout."""
    file = root / "COMMIT"
    noted = file.read_text(encoding="ascii").strip() if file.is_file() else ""
    # In a checkout, it holds what `git archive` replaces (gitattributes(5), export-subst).
    return _commit_of_checkout(root) if not noted or noted.startswith("$") else noted


def _commit_of_checkout(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    # The code may belong to somebody else than who runs it.
    command = ("git", "-c", f"safe.directory={root}", "-C", str(root), "rev-parse", "HEAD")
    try:
        done = subprocess.run(  # noqa: S603 - constants
            command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
