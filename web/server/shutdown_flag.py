"""State of a web process that is shutting down but still serves (SHUTDOWN_DELAY_SECONDS)."""

from threading import Event

_shutdown_begun = Event()


def begin_shutdown() -> None:
    """Make /readyz return 503."""
    _shutdown_begun.set()


def is_shutting_down() -> bool:
    """Return whether this process is shutting down."""
    return _shutdown_begun.is_set()
