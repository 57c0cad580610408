"""Job that checks users' identities with their identity providers, outside of requests."""

import logging
from time import monotonic
from typing import Any, cast

from sqlalchemy.orm import Session

from domain.access.actor import AccessMethod, Actor, PolicyLookup, UnitOfWork
from domain.accounts.identity_providers.errors import ProviderError, ProviderUnreachableError
from domain.accounts.identity_providers.identity_checks import (
    check_identity_at_provider,
    claim_due_identity,
)
from domain.accounts.identity_providers.provider_client import ProviderHttpAccess
from domain.core.clock import read_system_clock
from domain.core.database.locks import commit_to_release_locks
from domain.core.keyring import Keyring
from web.database.engine import use_engine
from web.outgoing.client import OutgoingClient
from web.settings.environment import Settings
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.identities")
#: Seconds after which a run stops. The next run checks the remaining identities.
_MAX_RUN_SECONDS = 50.0


def check_identities(settings: Settings) -> None:
    """Check all identities that are due, one after the other.

    If a provider cannot be reached, its remaining identities are skipped until the next run.
    """
    ends, away = monotonic() + _MAX_RUN_SECONDS, set[int]()
    with use_engine(settings) as engine, Session(engine) as session:
        current = read_current_settings(settings, session=session)
        policy = _build_policy_lookup(current)
        while monotonic() < ends and (
            due := claim_due_identity(but=away, session=session, now=read_system_clock())
        ):
            identity_id, provider_id = due
            work = UnitOfWork(
                actor=Actor(means=AccessMethod.JOB),
                session=session,
                now=read_system_clock(),
                settings=current,
                policy=policy,
            )
            try:
                check_identity_at_provider(work, identity_id)
                commit_to_release_locks(session)  # the next provider may be slow
            except ProviderError as error:
                session.rollback()
                _log.warning(
                    "Identity check at a provider failed; the worker will retry.",
                    extra={
                        "event": "identity.check_failed",
                        "identity": identity_id,
                        "reason": error.reason,
                    },
                )
                if isinstance(error, ProviderUnreachableError):
                    away.add(provider_id)


def _build_policy_lookup(current: Settings) -> PolicyLookup:
    known: dict[type[Any], Any] = {
        Keyring: Keyring(current.secret_key, *current.secret_key_fallbacks),
        ProviderHttpAccess: ProviderHttpAccess(
            fetch=OutgoingClient.from_settings(current).send_request
        ),
    }
    return cast("PolicyLookup", known.__getitem__)
