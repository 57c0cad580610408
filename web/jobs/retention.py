"""Periodic jobs for stored data, such as pruning, deletion, daily counts and audit seals.

Pruning and the check of who can be on call run every ten minutes; `gatebell prune` prunes
immediately. The others run every minute. Pruning and counting also repair case-folded names.
"""

import logging
from datetime import timedelta
from functools import partial

from sqlalchemy.orm import Session

from domain.accounts.email_addresses import Letterhead
from domain.accounts.lifecycle.idle_accounts import IdleAccounts
from domain.alerts.handling.batches import prune_batches
from domain.alerts.handling.retention import remove_resolved, resolve_silent
from domain.alerts.integrations.monitors import settle_monitors
from domain.alerts.listing.charts import add_up
from domain.audit.seals import audit_key, head_of, prune_events, seal_events
from domain.core.clock import Clock, system_clock
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import drop_old_entries, remove_orphans
from domain.delivery.webhooks.endpoints import WEBHOOKS, give_up_old, prune_log
from domain.git.storage import remove_repository
from domain.housekeeping.deletion import Between, remove_deleted
from domain.housekeeping.encrypting import encrypt_clear_rows
from domain.housekeeping.folded_names import fold_accounts, fold_environments
from domain.housekeeping.pruning import KeptDeliveries, Retention, prune, remove_ended
from domain.oauth.personal_tokens.lifetimes import end_endless_tokens
from domain.paging.notifications.contacts import unconfirm_ended
from domain.paging.on_call.eligibility import note_eligibility
from web.database.engine import engine_of
from web.database.schema import newest_known_revision
from web.settings.policies.tokens import token_lifetimes
from web.settings.reader import Settings
from web.settings.stored import current_settings

_log = logging.getLogger("gatebell.prune")
_audit_log = logging.getLogger("gatebell.audit")
_deletion_log = logging.getLogger("gatebell.deletion")
_webhook_log = logging.getLogger("gatebell.webhooks")


def run_prune(settings: Settings, *, kept: KeptDeliveries) -> None:
    """Prune the database and log what was removed."""
    removed = prune_database(settings, kept=kept)
    if any(removed.values()):
        _log.info("Expired data was removed.", extra={"event": "prune.completed", **removed})


def let_alerts_follow_monitors(settings: Settings) -> None:
    """Assign alerts to the monitors of their integrations."""
    with engine_of(settings) as engine, Session(engine) as session:
        settle_monitors(session=session, now=system_clock(), between=session.commit)
        session.commit()


def note_who_can_be_on_call(settings: Settings) -> None:
    """Store which users have become eligible for on-call duty, and which no longer are."""
    with engine_of(settings) as engine, Session(engine) as session:
        note_eligibility(session=session, now=system_clock(), between=session.commit)


def prune_database(settings: Settings, *, kept: KeptDeliveries | None = None) -> dict[str, int]:
    """Remove expired rows and return how many of each kind were removed.

    Tokens without an expiry date get one if the running release requires it.
    """
    with engine_of(settings) as engine, Session(engine) as session:
        current = current_settings(settings, session=session)
        session.commit()
        retention = Retention(
            keep_deliveries=current.delivery_keep_count,
            keep_for=timedelta(days=current.delivery_keep_days),
            keep_calls_for=timedelta(days=current.call_keep_days),
            keep_pings=current.heartbeat_log_keep_count,
        )
        fold_accounts(session=session, between=session.commit)
        session.commit()
        now, between = system_clock(), session.commit
        removed = prune(retention, kept=kept, session=session, now=now, between=between)
        between()
        removed["members"] = remove_ended(session=session, now=now, between=between)
        removed["tokens_given_expiry"] = end_endless_tokens(
            token_lifetimes(current), session=session, now=now, between=between
        )
        between()
        removed["alert_batches"] = prune_batches(session=session, now=now, between=between)
        for prune_more in (_prune_audit_log, _prune_alerts, _prune_webhooks):
            between()
            removed |= prune_more(current, session, between)
        session.commit()
        return removed


def _prune_alerts(current: Settings, session: Session, between: Between) -> dict[str, int]:
    """Remove resolved alerts that exceed the configured age and return their number."""
    if not current.alert_keep_days:
        return {}
    before = system_clock() - timedelta(days=current.alert_keep_days)
    return {"alerts": remove_resolved(before=before, session=session, between=between)}


def _prune_audit_log(current: Settings, session: Session, between: Between) -> dict[str, int]:
    """Remove old audit events and old stream entries and return the number of each."""
    now = system_clock()
    waiting_since = now - timedelta(days=current.audit_stream_keep_days)
    dropped = drop_old_entries(session=session, before=waiting_since, now=now, between=between)
    if dropped:
        _audit_log.error(
            "Audit events were dropped because a destination did not accept them in time.",
            extra={"event": "audit_stream.events_dropped", "count": dropped},
        )
    orphans = remove_orphans(session=session, between=between)
    between()
    key = audit_key(session=session, keyring=_keyring(current), now=now)
    _seal(session, key)
    between()
    kept_since = now - timedelta(days=current.audit_event_keep_days)
    removed = prune_events(session=session, key=key, before=kept_since, between=between)
    return {"audit_stream_entries": dropped + orphans, "audit_events": removed}


def _prune_webhooks(current: Settings, session: Session, between: Between) -> dict[str, int]:
    """Cancel deliveries that waited too long and remove old log entries; return their number."""
    now = system_clock()
    given_up = give_up_old(session=session, now=now, between=between)
    if given_up:
        _webhook_log.error(
            "Webhook deliveries were canceled because they waited too long.",
            extra={"event": "webhook.deliveries_canceled", "count": given_up},
        )
    before = now - timedelta(days=current.webhook_delivery_keep_days)
    between()
    return {"webhook_deliveries": prune_log(before=before, session=session, between=between)}


def encrypt_stored(settings: Settings, *, clock: Clock = system_clock) -> dict[str, int]:
    """Encrypt what older releases stored in plain text; return the number of rows of each kind."""
    with engine_of(settings) as engine, Session(engine) as session:
        done = encrypt_clear_rows(
            newest_known_revision(),
            session=session,
            keyring=_keyring(settings),
            now=clock(),
            between=session.commit,
        )
    if any(done.values()):
        _log.info("Stored secrets were encrypted.", extra={"event": "secrets.encrypted", **done})
    return done


def pause_ended_webhooks(settings: Settings, *, clock: Clock = system_clock) -> int:
    """Pause the webhooks and unconfirm the contacts of applications without access.

    Return the number of both.
    """
    with engine_of(settings) as engine, Session(engine) as session, session.begin():
        paused = WEBHOOKS.pause_ended(session=session, now=clock())
        unconfirmed = unconfirm_ended(session=session, now=clock())
    if paused or unconfirmed:
        counts = {"webhooks": paused, "contacts": unconfirmed}
        _webhook_log.info(
            "Webhooks and contacts were disabled because their application lost access.",
            extra={"event": "application.access_ended", **counts},
        )
    return paused + unconfirmed


def deactivate_idle_accounts(settings: Settings, *, clock: Clock = system_clock) -> dict[str, int]:
    """Send notices about unused accounts and deactivate them, if configured; return the counts."""
    with engine_of(settings) as engine, Session(engine) as session:
        current = current_settings(settings, session=session)
        if not current.deactivate_after_days:
            return {}
        head = Letterhead(
            instance_name=current.instance_name,
            base_url=current.base_url,
            keyring=_keyring(current),
            has_mail_server=bool(current.mail_url),
        )
        days = current.deactivate_after_days
        idle = IdleAccounts(
            days=days, head=head, session=session, now=clock(), between=session.commit
        )
        done = idle.settle()
    if any(done.values()):
        _log.info(
            "Idle accounts were notified or deactivated.",
            extra={"event": "accounts.idle_processed", **done},
        )
    return done


def run_deletions(settings: Settings) -> None:
    """Remove the data of deleted groups and projects, and log how many there were."""
    removed = remove_from_database(settings)
    if any(removed.values()):
        _deletion_log.info(
            "Data of deleted projects and groups was removed.",
            extra={"event": "deletion.completed", **removed},
        )


def remove_from_database(settings: Settings, *, clock: Clock = system_clock) -> dict[str, int]:
    """Remove deleted data and return the number of projects and groups removed."""
    with engine_of(settings) as engine, Session(engine) as session:
        removed = remove_deleted(
            remove_files=partial(remove_repository, settings.repositories_path),
            session=session,
            between=session.commit,
            now=clock(),
        )
        session.commit()
        return removed


def resolve_silent_alerts(settings: Settings) -> int:
    """Resolve the alerts that no report has repeated and return their number."""
    with engine_of(settings) as engine, Session(engine) as session:
        resolved = resolve_silent(session=session, now=system_clock(), between=session.commit)
        session.commit()
        return resolved


def add_up_days(settings: Settings) -> None:
    """Add new alerts to the daily counts, and fold the names of new environments."""
    with engine_of(settings) as engine, Session(engine) as session, session.begin():
        add_up(session=session)
        fold_environments(session=session)


def seal_audit_events(settings: Settings) -> None:
    """Seal new audit events and log the latest seal."""
    with engine_of(settings) as engine, Session(engine) as session:
        key = audit_key(session=session, keyring=_keyring(settings), now=system_clock())
        _seal(session, key)
        session.commit()


def _seal(session: Session, key: bytes) -> None:
    made = seal_events(session=session, key=key, now=system_clock(), between=session.commit)
    if made:
        said = {"head": str(head_of(made[-1])), "events": sum(each.event_count for each in made)}
        _audit_log.info("Audit events were sealed.", extra={"event": "audit.events_sealed", **said})


def _keyring(settings: Settings) -> Keyring:
    return Keyring(settings.secret_key, *settings.secret_key_fallbacks)
