"""Periodic jobs for stored data, such as pruning, deletion, daily counts and audit seals.

Pruning and recording on-call eligibility run every ten minutes. Idle accounts are deactivated every
hour. All other jobs run every minute. `gatebell prune` prunes immediately. Pruning and counting
also repair case-folded names.
"""

import logging
from datetime import timedelta
from functools import partial

from sqlalchemy.orm import Session

from domain.accounts.email_addresses import AccountMessageBuilder
from domain.accounts.lifecycle.idle_accounts import IdleAccountProcessor
from domain.alerts.handling.batches import prune_batches
from domain.alerts.handling.retention import delete_resolved_alerts, resolve_stale_alerts
from domain.alerts.integrations.monitors import update_monitors
from domain.alerts.listing.daily_counts import add_new_alerts_to_daily_counts
from domain.audit.seals import (
    build_seal_reference,
    get_or_create_audit_key,
    prune_events,
    seal_events,
)
from domain.core.clock import Clock, read_system_clock
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import delete_orphaned_events, drop_old_stream_events
from domain.delivery.webhooks.endpoints import (
    WEBHOOK_KIND,
    abandon_old_deliveries,
    prune_webhook_log,
)
from domain.git.storage import remove_repository
from domain.housekeeping.case_folding import fold_environment_names, refold_account_names
from domain.housekeeping.deletion import CommitBatchFunction, remove_deleted_namespaces
from domain.housekeeping.plaintext_encryption import encrypt_plaintext_rows
from domain.housekeeping.pruning import (
    DeliveryCheckProgress,
    Retention,
    prune_expired_rows,
    remove_expired_memberships,
)
from domain.oauth.personal_tokens.lifetimes import assign_expiry_to_tokens
from domain.paging.notifications.contacts import unconfirm_contacts_without_access
from domain.paging.on_call.eligibility import record_eligibility_changes
from web.database.engine import use_engine
from web.database.schema import get_newest_known_revision
from web.settings.environment import Settings
from web.settings.policies.tokens import build_token_lifetimes
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.prune")
_audit_log = logging.getLogger("gatebell.audit")
_deletion_log = logging.getLogger("gatebell.deletion")
_webhook_log = logging.getLogger("gatebell.webhooks")


def run_prune(settings: Settings, *, checked_deliveries: DeliveryCheckProgress) -> None:
    """Prune the database and log the numbers of removed rows."""
    removed = prune_database(settings, checked_deliveries=checked_deliveries)
    if any(removed.values()):
        _log.info("Expired data was removed.", extra={"event": "prune.completed", **removed})


def assign_alerts_to_monitors(settings: Settings) -> None:
    """Assign alerts to the monitors of their integrations."""
    with use_engine(settings) as engine, Session(engine) as session:
        update_monitors(session=session, now=read_system_clock(), between=session.commit)
        session.commit()


def record_on_call_eligibility(settings: Settings) -> None:
    """Record changes to the set of users who are eligible for on-call duty."""
    with use_engine(settings) as engine, Session(engine) as session:
        record_eligibility_changes(
            session=session, now=read_system_clock(), commit_batch=session.commit
        )


def prune_database(
    settings: Settings, *, checked_deliveries: DeliveryCheckProgress | None = None
) -> dict[str, int]:
    """Remove expired rows, and return the number of removed rows by kind.

    If the running release requires expiry dates, set an expiry date for tokens without one.
    """
    with use_engine(settings) as engine, Session(engine) as session:
        current = read_current_settings(settings, session=session)
        session.commit()
        retention = Retention(
            keep_deliveries=current.delivery_keep_count,
            keep_for=timedelta(days=current.delivery_keep_days),
            keep_calls_for=timedelta(days=current.call_keep_days),
            keep_pings=current.heartbeat_log_keep_count,
        )
        refold_account_names(session=session, commit_batch=session.commit)
        session.commit()
        now, between = read_system_clock(), session.commit
        removed = prune_expired_rows(
            retention,
            checked_deliveries=checked_deliveries,
            session=session,
            now=now,
            commit_batch=between,
        )
        between()
        removed["members"] = remove_expired_memberships(
            session=session, now=now, commit_batch=between
        )
        removed["tokens_given_expiry"] = assign_expiry_to_tokens(
            build_token_lifetimes(current), session=session, now=now, commit_batch=between
        )
        between()
        removed["alert_batches"] = prune_batches(session=session, now=now, between=between)
        for prune_more in (_prune_audit_log, _prune_alerts, _prune_webhooks):
            between()
            removed |= prune_more(current, session, between)
        session.commit()
        return removed


def _prune_alerts(
    current: Settings, session: Session, commit_batch: CommitBatchFunction
) -> dict[str, int]:
    """Remove resolved alerts that exceed the configured age, and return the number of alerts."""
    if not current.alert_keep_days:
        return {}
    before = read_system_clock() - timedelta(days=current.alert_keep_days)
    return {"alerts": delete_resolved_alerts(before=before, session=session, between=commit_batch)}


def _prune_audit_log(
    current: Settings, session: Session, commit_batch: CommitBatchFunction
) -> dict[str, int]:
    """Remove old audit events and stream entries, and return the number of rows of each kind."""
    now = read_system_clock()
    waiting_since = now - timedelta(days=current.audit_stream_keep_days)
    dropped = drop_old_stream_events(
        session=session, before=waiting_since, now=now, commit_batch=commit_batch
    )
    if dropped:
        _audit_log.error(
            "Audit events were dropped because a destination did not accept them in time.",
            extra={"event": "audit_stream.events_dropped", "count": dropped},
        )
    orphans = delete_orphaned_events(session=session, commit_batch=commit_batch)
    commit_batch()
    key = get_or_create_audit_key(session=session, keyring=_build_keyring(current), now=now)
    _seal_audit_events(session, key)
    commit_batch()
    kept_since = now - timedelta(days=current.audit_event_keep_days)
    removed = prune_events(session=session, key=key, before=kept_since, commit_batch=commit_batch)
    return {"audit_stream_entries": dropped + orphans, "audit_events": removed}


def _prune_webhooks(
    current: Settings, session: Session, commit_batch: CommitBatchFunction
) -> dict[str, int]:
    """Cancel overdue deliveries and remove old log entries.

    Return the number of removed log entries.
    """
    now = read_system_clock()
    given_up = abandon_old_deliveries(session=session, now=now, commit_batch=commit_batch)
    if given_up:
        _webhook_log.error(
            "Webhook deliveries were canceled because they waited too long.",
            extra={"event": "webhook.deliveries_canceled", "count": given_up},
        )
    before = now - timedelta(days=current.webhook_delivery_keep_days)
    commit_batch()
    return {
        "webhook_deliveries": prune_webhook_log(
            before=before, session=session, commit_batch=commit_batch
        )
    }


def encrypt_stored_secrets(
    settings: Settings, *, clock: Clock = read_system_clock
) -> dict[str, int]:
    """Encrypt data that older releases stored as plaintext.

    Return the number of encrypted rows by kind.
    """
    with use_engine(settings) as engine, Session(engine) as session:
        done = encrypt_plaintext_rows(
            get_newest_known_revision(),
            session=session,
            keyring=_build_keyring(settings),
            now=clock(),
            commit_batch=session.commit,
        )
    if any(done.values()):
        _log.info("Stored secrets were encrypted.", extra={"event": "secrets.encrypted", **done})
    return done


def pause_unauthorized_webhooks(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Pause the webhooks and unconfirm the contacts of applications that have lost access.

    Return the total number of webhooks and contacts.
    """
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        paused = WEBHOOK_KIND.pause_unauthorized_endpoints(session=session, now=clock())
        unconfirmed = unconfirm_contacts_without_access(session=session, now=clock())
    if paused or unconfirmed:
        counts = {"webhooks": paused, "contacts": unconfirmed}
        _webhook_log.info(
            "Webhooks and contacts were disabled because their application lost access.",
            extra={"event": "application.access_ended", **counts},
        )
    return paused + unconfirmed


def deactivate_idle_accounts(
    settings: Settings, *, clock: Clock = read_system_clock
) -> dict[str, int]:
    """Send notices about unused accounts and deactivate the accounts, if configured.

    Return the numbers of notified and deactivated accounts.
    """
    with use_engine(settings) as engine, Session(engine) as session:
        current = read_current_settings(settings, session=session)
        if not current.deactivate_after_days:
            return {}
        head = AccountMessageBuilder(
            instance_name=current.instance_name,
            base_url=current.base_url,
            keyring=_build_keyring(current),
            has_mail_server=bool(current.mail_url),
        )
        days = current.deactivate_after_days
        idle = IdleAccountProcessor(
            days=days, head=head, session=session, now=clock(), between=session.commit
        )
        done = idle.notify_and_deactivate()
    if any(done.values()):
        _log.info(
            "Idle accounts were notified or deactivated.",
            extra={"event": "accounts.idle_processed", **done},
        )
    return done


def run_deletions(settings: Settings) -> None:
    """Remove the data of deleted groups and projects, and log the numbers of removed items."""
    removed = remove_deleted_data(settings)
    if any(removed.values()):
        _deletion_log.info(
            "Data from deleted projects and groups was removed.",
            extra={"event": "deletion.completed", **removed},
        )


def remove_deleted_data(settings: Settings, *, clock: Clock = read_system_clock) -> dict[str, int]:
    """Remove deleted data and return the number of projects and groups removed."""
    with use_engine(settings) as engine, Session(engine) as session:
        removed = remove_deleted_namespaces(
            remove_files=partial(remove_repository, settings.repositories_path),
            session=session,
            commit_batch=session.commit,
            now=clock(),
        )
        session.commit()
        return removed


def resolve_unreported_alerts(settings: Settings) -> int:
    """Resolve the alerts that have had no further reports, and return the number of alerts."""
    with use_engine(settings) as engine, Session(engine) as session:
        resolved = resolve_stale_alerts(
            session=session, now=read_system_clock(), between=session.commit
        )
        session.commit()
        return resolved


def update_daily_counts(settings: Settings) -> None:
    """Add new alerts to the daily counts, and store the case-folded names of new environments."""
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        add_new_alerts_to_daily_counts(session=session)
        fold_environment_names(session=session)


def seal_audit_events(settings: Settings) -> None:
    """Seal new audit events and log the latest seal."""
    with use_engine(settings) as engine, Session(engine) as session:
        key = get_or_create_audit_key(
            session=session, keyring=_build_keyring(settings), now=read_system_clock()
        )
        _seal_audit_events(session, key)
        session.commit()


def _seal_audit_events(session: Session, key: bytes) -> None:
    made = seal_events(
        session=session, key=key, now=read_system_clock(), commit_batch=session.commit
    )
    if made:
        said = {
            "head": str(build_seal_reference(made[-1])),
            "events": sum(each.event_count for each in made),
        }
        _audit_log.info("Audit events were sealed.", extra={"event": "audit.events_sealed", **said})


def _build_keyring(settings: Settings) -> Keyring:
    return Keyring(settings.secret_key, *settings.secret_key_fallbacks)
