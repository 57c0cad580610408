"""Settings of a running service, changed for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep

from tests.support.live import LiveGatebell

#: Every process reads them again with the next request after a second.
_KNOWN_AFTER_SECONDS = 1.1


@contextmanager
def changed_setting(gatebell: LiveGatebell, name: str, value: str) -> Iterator[None]:
    """Give a setting another value, and in the end the one that it was started with."""
    gatebell.cli("settings", "set", name, value)
    try:
        sleep(_KNOWN_AFTER_SECONDS)
        yield
    finally:
        gatebell.cli("settings", "reset", name)
        sleep(_KNOWN_AFTER_SECONDS)
