"""Job that checks users' identities with their identity providers, outside of requests."""

import logging
from time import monotonic
from typing import Any, cast

from sqlalchemy.orm import Session

from domain.access.actor import Actor, Means, Policies, Work
from domain.accounts.identity_providers.checks import check_identity, claim_due
from domain.accounts.identity_providers.errors import ProviderAwayError, ProviderError
from domain.accounts.identity_providers.relying_party import Upstream
from domain.core.clock import system_clock
from domain.core.database.locks import release_locks
from domain.core.keyring import Keyring
from web.database.engine import engine_of
from web.outgoing.client import OutgoingClient
from web.settings.reader import Settings
from web.settings.stored import current_settings

_log = logging.getLogger("gatebell.identities")
#: Time after which a run stops; the next run checks the remaining identities.
_TURN_SECONDS = 50.0


def check_identities(settings: Settings) -> None:
    """Check all identities that are due, one after the other.

    Skip the other identities of a provider that cannot be reached until the next run.
    """
    ends, away = monotonic() + _TURN_SECONDS, set[int]()
    with engine_of(settings) as engine, Session(engine) as session:
        current = current_settings(settings, session=session)
        policy = _policies(current)
        while monotonic() < ends and (
            due := claim_due(but=away, session=session, now=system_clock())
        ):
            identity_id, provider_id = due
            work = Work(
                actor=Actor(means=Means.JOB),
                session=session,
                now=system_clock(),
                settings=current,
                policy=policy,
            )
            try:
                check_identity(work, identity_id)
                release_locks(session)  # the next provider may be slow
            except ProviderError as error:
                session.rollback()
                _log.warning(
                    "Identity check at a provider failed; the worker retries.",
                    extra={
                        "event": "identity.check_failed",
                        "identity": identity_id,
                        "reason": error.reason,
                    },
                )
                if isinstance(error, ProviderAwayError):
                    away.add(provider_id)


def _policies(current: Settings) -> Policies:
    known: dict[type[Any], Any] = {
        Keyring: Keyring(current.secret_key, *current.secret_key_fallbacks),
        Upstream: Upstream(fetch=OutgoingClient.of(current).fetch),
    }
    return cast("Policies", known.__getitem__)
