"""Lets no signal get lost between the fork of a web process and its first look at signals.

In between it has the handlers of gunicorn's master, which only write a signal down for the master
itself. Told to stop in that moment, the process would go on, and the master would wait for it until
GRACEFUL_TIMEOUT_SECONDS are over. So the signals wait.
"""

import os
from functools import partial
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, SIGQUIT, SIGTERM, pthread_sigmask

_TO_STOP = frozenset({SIGINT, SIGQUIT, SIGTERM})


def hold_back_while_forking() -> None:
    """Let what this process forks wait with signals until it calls `let_through`."""
    os.register_at_fork(
        before=partial(pthread_sigmask, SIG_BLOCK, _TO_STOP), after_in_parent=let_through
    )


def let_through() -> None:
    """Take the signals that have waited, and all that come."""
    pthread_sigmask(SIG_UNBLOCK, _TO_STOP)
