"""Maintenance jobs of the worker: pruning, daily alert counts, and audit seals.

Pruning runs every ten minutes, and at once with `gatebell prune`; counts and seals every minute.
Pruning and counting also repair case-folded names.
"""

import logging
from datetime import timedelta

from sqlalchemy.orm import Session

from domain.alerts.handling.batch_rows import prune_batches
from domain.alerts.handling.removal import remove_resolved
from domain.alerts.handling.silent_alerts import resolve_silent
from domain.alerts.listing.charts import add_up
from domain.audit.seals import audit_key, prune_events, seal_events
from domain.audit.streaming.backlog import drop_old_entries, remove_orphans
from domain.audit.verification import head_of
from domain.clock import system_clock
from domain.keyring import Keyring
from domain.oauth.personal_tokens.lifetimes import end_endless_tokens
from domain.upkeep.ended_memberships import remove_ended
from domain.upkeep.folded_names import fold_accounts, fold_environments
from domain.upkeep.pruning import Retention, prune
from domain.webhooks.upkeep import give_up_old, prune_log
from web.database.engine import open_engine
from web.jobs.current_settings import current_settings
from web.settings.policies import token_lifetimes
from web.settings.reader import Settings, settings_from_environment

_log = logging.getLogger("gatebell.prune")
_audit_log = logging.getLogger("gatebell.audit")
_webhook_log = logging.getLogger("gatebell.webhooks")


def run_prune() -> None:
    """Prune the database of the environment."""
    _log.info("pruned", extra=prune_database(settings_from_environment()))


def prune_database(settings: Settings) -> dict[str, int]:
    """Remove expired rows and return how many of each kind were removed.

    Tokens that never end get an expiry where the running release asks for one.
    """
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            current = current_settings(settings, session=session)
            session.commit()
            retention = Retention(
                keep_deliveries=current.delivery_keep_count,
                keep_for=timedelta(days=current.delivery_keep_days),
                keep_calls_for=timedelta(days=current.call_keep_days),
                keep_pings=current.heartbeat_log_keep_count,
            )
            fold_accounts(session=session, between=session.commit)
            now, between = system_clock(), session.commit
            removed = prune(retention, session=session, now=now, between=between)
            removed["members"] = remove_ended(session=session, now=now, between=between)
            removed["tokens_given_expiry"] = end_endless_tokens(
                token_lifetimes(current), session=session, now=now, between=between
            )
            removed["alert_batches"] = prune_batches(session=session, now=now, between=between)
            removed |= _prune_audit_log(current, session) | _prune_alerts(current, session)
            removed["webhook_deliveries"] = _prune_webhooks(current, session)
            session.commit()
            return removed
    finally:
        engine.dispose()


def _prune_alerts(current: Settings, session: Session) -> dict[str, int]:
    """Remove resolved alerts by age, if that is set; return how many."""
    if not current.alert_keep_days:
        return {}
    before = system_clock() - timedelta(days=current.alert_keep_days)
    return {"alerts": remove_resolved(before=before, session=session, between=session.commit)}


def _prune_audit_log(current: Settings, session: Session) -> dict[str, int]:
    """Remove events and what waits for their destinations, by age; return how many of each."""
    now, between = system_clock(), session.commit
    waiting_since = now - timedelta(days=current.audit_stream_keep_days)
    dropped = drop_old_entries(session=session, before=waiting_since, now=now, between=between)
    if dropped:
        _audit_log.error("audit events given up for a destination", extra={"count": dropped})
    orphans = remove_orphans(session=session, between=between)
    key = audit_key(session=session, keyring=_keyring(current), now=now)
    _seal(session, key)
    kept_since = now - timedelta(days=current.audit_event_keep_days)
    removed = prune_events(session=session, key=key, before=kept_since, between=between)
    return {"audit_stream_entries": dropped + orphans, "audit_events": removed}


def _prune_webhooks(current: Settings, session: Session) -> int:
    """Give up what waited too long, and remove what the log need not keep; return how many."""
    now, between = system_clock(), session.commit
    given_up = give_up_old(session=session, now=now, between=between)
    if given_up:
        _webhook_log.error("webhook deliveries given up", extra={"count": given_up})
    before = now - timedelta(days=current.webhook_delivery_keep_days)
    return prune_log(before=before, session=session, between=between)


def run_resolve_silent() -> None:
    """Resolve the alerts in the database of the environment that went silent."""
    resolve_silent_alerts(settings_from_environment())


def resolve_silent_alerts(settings: Settings) -> int:
    """Resolve the alerts that no report repeats, and return how many."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            resolved = resolve_silent(session=session, now=system_clock(), between=session.commit)
            session.commit()
            return resolved
    finally:
        engine.dispose()


def run_add_up() -> None:
    """Update the daily counts in the database of the environment."""
    add_up_days(settings_from_environment())


def add_up_days(settings: Settings) -> None:
    """Add new alerts to the daily counts, and fold the names of new environments."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session, session.begin():
            add_up(session=session)
            fold_environments(session=session)
    finally:
        engine.dispose()


def run_seal() -> None:
    """Seal new audit events in the database of the environment."""
    seal_audit_events(settings_from_environment())


def seal_audit_events(settings: Settings) -> None:
    """Seal new audit events, and log the last seal."""
    engine = open_engine(settings)
    try:
        with Session(engine) as session:
            key = audit_key(session=session, keyring=_keyring(settings), now=system_clock())
            _seal(session, key)
            session.commit()
    finally:
        engine.dispose()


def _seal(session: Session, key: bytes) -> None:
    made = seal_events(session=session, key=key, now=system_clock(), between=session.commit)
    if made:
        said = {"head": str(head_of(made[-1])), "events": sum(each.event_count for each in made)}
        _audit_log.info("audit events sealed", extra=said)


def _keyring(settings: Settings) -> Keyring:
    return Keyring(settings.secret_key, *settings.secret_key_fallbacks)
