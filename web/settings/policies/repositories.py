"""Git program and location of repositories, derived from the settings."""

from domain.git.program import Git
from web.settings.environment import Settings


def build_git(current: Settings) -> Git:
    """Return the Git program with the location of the repositories."""
    return Git(
        program=current.git_program,
        root=current.repositories_path,
        patience=current.git_idle_timeout_seconds,
    )
