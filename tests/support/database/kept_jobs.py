"""Keeps jobs of the worker during a test, since each new job compiles its statements again."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar, cast

from web.jobs.scheduler import Job
from web.settings.environment import Settings

Kind = TypeVar("Kind", bound=Job)


class KeptJobs:
    """The jobs of a test, by kind and settings."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Settings], Job] = {}
        self._stack = ExitStack()

    def get(self, kind: str, settings: Settings, make: Callable[[Settings], Kind]) -> Kind:
        """Return the job of a kind with these settings, and create it if necessary."""
        key = kind, settings
        if key not in self._made:
            self._made[key] = self._stack.enter_context(make(settings))
        return cast("Kind", self._made[key])

    def close(self) -> None:
        """Stop all jobs."""
        self._stack.close()
