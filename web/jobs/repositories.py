"""Jobs that pack repositories after pushes and remove images from the registry."""

import logging
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.core.clock import Clock, read_system_clock
from domain.core.errors import DomainError, NotFoundError
from domain.core.keyring import Keyring
from domain.git.maintenance import pack_pushed_repositories
from domain.git.storage import remove_interrupted_leftovers
from domain.registry.client import open_registry_client
from domain.registry.removal import (
    ClaimedRemoval,
    RemovalLimits,
    claim_removal,
    finish_removal,
    release_claimed_removal,
    remove_repository,
    remove_tags,
    store_removal_failure,
)
from domain.registry.repositories import get_repository_to_remove
from web.database.engine import use_engine
from web.settings.environment import Settings
from web.settings.policies.registry import build_registry_policy
from web.settings.policies.repositories import build_git
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.git")
_DAY_SECONDS = 86_400
_registry_log = logging.getLogger("gatebell.registry")
#: Maximum duration of one run. The job runs every minute and continues in the next run.
_MAX_RUN_TIME = timedelta(seconds=45)


def pack_repositories(settings: Settings) -> None:
    """Pack the repositories that received pushes, and remove leftover temporary directories.

    Each host packs its own repositories, one after the other. If several hosts share a directory,
    each repository is packed by only one host.
    """
    own = build_git(settings)
    if own.find_problem() or not own.root.exists():
        return
    left = remove_interrupted_leftovers(
        own.root, older_than=read_system_clock().timestamp() - _DAY_SECONDS
    )
    packed = pack_pushed_repositories(own)
    if packed or left:
        _log.info(
            "Repository maintenance completed.",
            extra={"event": "git.repositories_packed", "packed": packed, "leftovers": left},
        )


def run_registry_removals(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Run the removals that are due, and return the number of completed removals."""
    began, done = clock(), 0
    with use_engine(settings) as engine:
        while clock() - began < _MAX_RUN_TIME:
            with Session(engine) as session, session.begin():
                removal = claim_removal(session=session, now=clock())
            if removal is None:
                break
            until = began + _MAX_RUN_TIME
            with Session(engine) as session:
                done += _run_removal(removal, settings, session, clock, until)
    return done


def _run_removal(
    removal: ClaimedRemoval, settings: Settings, session: Session, clock: Clock, until: datetime
) -> bool:
    """Run a removal until the time is up, and return whether it is complete."""
    try:
        is_done = _remove_images(removal, settings, session, clock, until)
    except DomainError as error:
        session.rollback()
        store_removal_failure(removal, str(error), session=session, now=clock())
        session.commit()
        fields = {"removal_id": removal.id, "failures": removal.failures + 1, "reason": str(error)}
        _registry_log.warning(
            "Removal of images from the registry failed; the worker will retry.",
            extra={"event": "registry.removal_failed", **fields},
        )
        return False
    if is_done:
        finish_removal(removal, session=session)
    else:
        release_claimed_removal(removal, session=session, now=clock())
    session.commit()
    return is_done


def _remove_images(
    removal: ClaimedRemoval, settings: Settings, session: Session, clock: Clock, until: datetime
) -> bool:
    """Remove the repository or its tags, and return False if time ran out."""
    try:
        repository = get_repository_to_remove(removal.repository_id, session=session)
    except NotFoundError:  # already removed by another process
        return True
    policy = build_registry_policy(read_current_settings(settings, session=session))
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    with open_registry_client(policy, session=session, keyring=keyring, now=clock()) as client:
        session.commit()  # requests to the registry may be slow

        pace = RemovalLimits(goes_on=lambda: clock() < until, between=session.commit)
        if removal.rule is None:
            return remove_repository(repository, client=client, session=session, pace=pace)
        return remove_tags(
            repository, removal.rule, client=client, session=session, now=clock(), pace=pace
        )
