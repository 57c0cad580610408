"""Tells whoever supervises the worker that it works: `web/server/supervisor.py`, or systemd."""

import logging
from collections.abc import Sequence
from threading import Thread
from time import sleep

from gunicorn.systemd import sd_notify

from web.jobs.loops import Loop

_log = logging.getLogger("gatebell.jobs")
#: The supervisor, and WatchdogSec of deploy/systemd/gatebell-worker.service, wait for several.
_INTERVAL_SECONDS = 5.0
#: A job that has not come back for so long hangs: each of its waits has a limit of its own.
_LONGEST_TURN_SECONDS = 1_800


def start_signs_of_life(loops: Sequence[Loop]) -> None:
    """Begin, in a daemon thread; without a supervisor, nobody is told."""
    Thread(target=_send_on, args=(loops,), name="signs of life", daemon=True).start()


def _send_on(loops: Sequence[Loop]) -> None:
    sd_notify("READY=1", _log)
    while not (hanging := [each.name for each in loops if _hangs(each)]):
        sd_notify("WATCHDOG=1", _log)
        sleep(_INTERVAL_SECONDS)
    _log.error(
        "a job of the worker hangs: it shows no further sign of life", extra={"job": hanging}
    )


def _hangs(loop: Loop) -> bool:
    return loop.seconds_of_turn() > _LONGEST_TURN_SECONDS
