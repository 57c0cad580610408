"""Repositories of a registry in the lists of python-gitlab."""

from typing import Any

from tests.support.alerts.monitoring import wait_until
from tests.support.service.live import LiveGatebell
from web.jobs.repositories import run_registry_removals
from web.settings.environment import parse_settings


def tags_of(repository: Any) -> list[str]:
    """Return the names of a repository's tags."""
    return [tag.name for tag in repository.tags.list(get_all=True)]


def wait_for_tags(repository: Any, *expected: str) -> None:
    """Wait for the registry's notification."""
    wait_until(lambda: tags_of(repository) == sorted(expected), f"the tags are {expected}")


def work(service: LiveGatebell) -> int:
    """Run the worker's job that removes images from the registry."""
    return run_registry_removals(parse_settings(service.environment))
