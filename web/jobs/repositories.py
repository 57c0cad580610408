"""The job of the worker that packs repositories after pushes."""

import logging
from threading import Lock

from domain.clock import system_clock
from domain.repositories.storage import remove_leftovers
from domain.repositories.upkeep import pack_pushed
from web.settings.policies import git
from web.settings.reader import settings_from_environment

_log = logging.getLogger("gatebell.git")
_DAY = 86_400


#: Packing takes long: the next run must not take another thread of the worker.
_running = Lock()


def run_pack() -> None:
    """Pack what was pushed to, one repository after the other, and remove what was left behind.

    Each host packs its own; of hosts that share a directory one takes up each repository.
    """
    if _running.acquire(blocking=False):
        try:
            _pack()
        finally:
            _running.release()


def _pack() -> None:
    own = git(settings_from_environment())
    if own.problem() or not own.root.exists():
        return
    left = remove_leftovers(own.root, older_than=system_clock().timestamp() - _DAY)
    packed = pack_pushed(own)
    if packed or left:
        _log.info("repositories packed", extra={"packed": packed, "leftovers": left})
