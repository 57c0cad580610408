"""Blocks signals between the fork of a web process and the installation of its handlers.

In between the process has the handlers of gunicorn's master, which only queue a signal for the
master. A SIGTERM at that moment would be lost, and the master would wait for the process until
GRACEFUL_TIMEOUT_SECONDS have passed.
"""

import os
from functools import partial
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, SIGQUIT, SIGTERM, pthread_sigmask

_TO_STOP = frozenset({SIGINT, SIGQUIT, SIGTERM})


def hold_signals_while_forking() -> None:
    """Block the stop signals in forked processes until they call `release_signals`."""
    os.register_at_fork(
        before=partial(pthread_sigmask, SIG_BLOCK, _TO_STOP), after_in_parent=release_signals
    )


def release_signals() -> None:
    """Unblock the stop signals."""
    pthread_sigmask(SIG_UNBLOCK, _TO_STOP)
