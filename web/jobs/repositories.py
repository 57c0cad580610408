"""The job of the worker that packs repositories after pushes."""

import logging

from domain.clock import system_clock
from domain.repositories.storage import remove_leftovers
from domain.repositories.upkeep import pack_pushed
from web.settings.policies import git
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.git")
_DAY = 86_400


def pack_repositories(settings: Settings) -> None:
    """Pack what was pushed to, one repository after the other, and remove what was left behind.

    Each host packs its own; of hosts that share a directory one takes up each repository.
    """
    own = git(settings)
    if own.problem() or not own.root.exists():
        return
    left = remove_leftovers(own.root, older_than=system_clock().timestamp() - _DAY)
    packed = pack_pushed(own)
    if packed or left:
        _log.info("repositories packed", extra={"packed": packed, "leftovers": left})
