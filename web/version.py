"""Version and commit of the running code.

The version comes from pyproject.toml, and the commit may be unknown. Versions between two releases
end with `.dev0`, so only the commit distinguishes them.
"""

import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_GIT_TIMEOUT_SECONDS = 5
#: Number of digits of a commit hash that are displayed.
_SHOWN_COMMIT_DIGITS = 12


@dataclass(frozen=True)
class Build:
    """Version and commit of the code."""

    version: str
    #: Full hash of the commit, or an empty string if it is unknown.
    revision: str

    def __str__(self) -> str:
        """Return the version for display, such as `0.2.0 (1f2e3d4c5b6a)`."""
        return (
            f"{self.version} ({self.revision[:_SHOWN_COMMIT_DIGITS]})"
            if self.revision
            else self.version
        )


@cache
def get_running_build() -> Build:
    """Return the version and commit of the code that this process runs."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Build(version=project["version"], revision=_find_commit(_ROOT))


def _find_commit(root: Path) -> str:
    """Return the commit recorded in an archive or image, or else the checked-out commit."""
    file = root / "COMMIT"
    noted = file.read_text(encoding="ascii").strip() if file.is_file() else ""
    # In a checkout, the file contains the placeholder of `git archive` (gitattributes(5),
    # export-subst).
    return _find_checkout_commit(root) if not noted or noted.startswith("$") else noted


def _find_checkout_commit(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    # The owner of the code may differ from the user of this process.
    command = ("git", "-c", f"safe.directory={root}", "-C", str(root), "rev-parse", "HEAD")
    try:
        done = subprocess.run(  # noqa: S603 - constants
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
