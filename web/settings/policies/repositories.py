"""The policy of Git repositories."""

from domain.git.program import Git
from web.settings.reader import Settings


def git(current: Settings) -> Git:
    """Return Git, and where the repositories lie."""
    return Git(
        program=current.git_program,
        root=current.repositories_path,
        patience=current.git_idle_timeout_seconds,
    )
