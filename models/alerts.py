"""Alerts, integrations and deliveries, the history of alerts, and the feed of alert changes."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Date,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from models.base import (
    Base,
    BaseWithId,
    BigId,
    build_cascading_foreign_key,
    build_partial_index,
    build_set_null_foreign_key,
)
from models.case_folding import build_folded_column, sync_folded_column


class Integration(BaseWithId):
    """An integration that receives alerts or connects an external on-call tool."""

    __tablename__ = "integrations"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    #: Format name from `domain/alerts/formats/registry.py`. The column accepts any text, so that a
    #: new format needs no migration.
    type: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(255))
    active: Mapped[bool] = mapped_column(default=True)
    #: Last part of the receiving URL: 16 hexadecimal characters.
    endpoint_identifier: Mapped[str] = mapped_column(String(32), unique=True)
    #: Keyed hash of the key, which is compared with the key in a request.
    key_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: Encrypted key. It is stored because maintainers can display it again.
    key_ciphertext: Mapped[str] = mapped_column(Text)
    key_last_used_at: Mapped[datetime | None]
    previous_key_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    previous_key_expires_at: Mapped[datetime | None]
    previous_key_last_used_at: Mapped[datetime | None]
    #: URL of Prometheus or of the on-call tool, depending on the type.
    api_url: Mapped[str | None] = mapped_column(Text)
    #: Sample payload from the sender, another message about the same problem, the message about its
    #: recovery, and the mapping of their values to the fields of an alert
    #: (`domain.alerts.parsing.mapping`).
    sample: Mapped[str | None] = mapped_column(Text)
    sample_repeat: Mapped[str | None] = mapped_column(Text)
    sample_recovery: Mapped[str | None] = mapped_column(Text)
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Minutes without a report after which an open alert is resolved. NULL stands for never.
    resolve_after_minutes: Mapped[int | None]
    #: Integrations with the same monitor share alerts (`domain.alerts.integrations.monitors`). If
    #: the monitor is 0, fingerprints are stored unchanged. NULL means 0 until the upgrade to
    #: monitors is done.
    monitor_id: Mapped[int | None] = mapped_column(BigInteger)
    #: Time at which the monitor last changed. NULL once all alerts have been moved to it.
    monitor_changed_at: Mapped[datetime | None]
    #: True if senders can pass the key in the `key` URL parameter.
    accepts_key_in_url: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: Time of the first rejected request while all requests to the integration are rejected. NULL
    #: otherwise (`domain.alerts.integrations.rejections`).
    rejected_since: Mapped[datetime | None]
    created_at: Mapped[datetime]

    __table_args__ = (
        # Partial index: few integrations have alerts that still have to be moved.
        build_partial_index(
            "ix_integrations_monitor_pending",
            "id",
            where="monitor_id IS NULL OR monitor_changed_at IS NOT NULL",
        ),
        Index("ix_integrations_project_id_type_id", "project_id", "type", "id"),
        # These indexes serve senders whose URL does not name the integration.
        Index("ix_integrations_key_digest", "key_digest"),
        Index("ix_integrations_previous_key_digest", "previous_key_digest"),
    )


class Delivery(BaseWithId):
    """A request to a receiver and its outcome.

    The body is stored only in this table. An alert refers to the delivery that contains the report
    shown for the alert.
    """

    __tablename__ = "deliveries"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    #: Integration that received the request. NULL after the integration is deleted; the delivery is
    #: kept, because alerts still need the payload.
    integration_id: Mapped[int | None] = build_set_null_foreign_key("integrations")
    #: Format of the body, as a name from the registry of formats.
    format: Mapped[str] = mapped_column(String(16))
    #: Mapping used to parse the body (`domain.alerts.parsing.mapping`). NULL if unknown.
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: True if a user sent the delivery from the page of the integration.
    is_test: Mapped[bool] = mapped_column(default=False)
    received_at: Mapped[datetime]
    #: HTTP status code of the response.
    status_code: Mapped[int] = mapped_column(SmallInteger)
    #: Reason for a rejection, as a sentence.
    reason: Mapped[str | None] = mapped_column(Text)
    sender: Mapped[str] = mapped_column(String(64))
    #: Size of the body in bytes as received. It is also set if the body was rejected unread and is
    #: not stored.
    size: Mapped[int]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    opened: Mapped[int] = mapped_column(default=0)
    joined: Mapped[int] = mapped_column(default=0)
    resolved: Mapped[int] = mapped_column(default=0)
    #: Warnings from the parser: one sentence for each rejected item and each guessed value.
    parse_warnings: Mapped[list[str]] = mapped_column("remarks", JSON, default=list)
    truncated_alerts: Mapped[int] = mapped_column(default=0)
    #: Number of items that the mapping's rules dropped.
    dropped: Mapped[int] = mapped_column(default=0, server_default="0")
    #: Microseconds from the arrival of the request until this row was written.
    duration: Mapped[int | None]
    #: Number of later rejections of the same kind that are counted here instead of stored.
    skipped: Mapped[int] = mapped_column(default=0)
    #: User agent of a rejected request.
    user_agent: Mapped[str | None] = mapped_column(String(255))

    #: Accepted delivery that was created when this rejected delivery was replayed.
    replayed_as: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        Index("ix_deliveries_integration_id_id", "integration_id", "id"),
        build_partial_index(
            "ix_deliveries_refused", "integration_id", "id", where="status_code >= 300"
        ),
        # These indexes serve the other filters of the log, which would otherwise scan all its rows.
        # With the statistics from migration 0101, Postgres can estimate how few rows match.
        build_partial_index(
            "ix_deliveries_warned",
            "integration_id",
            "id",
            where="CAST(remarks AS TEXT) <> '[]'",
        ),
        build_partial_index("ix_deliveries_tests", "integration_id", "id", where="is_test"),
        Index("ix_deliveries_project_id", "project_id"),
    )


class AlertCounter(Base):
    """The row whose lock serializes batches and status changes within a project.

    On SQLite, the row also counts the alerts. On Postgres, a sequence counts the alerts (migration
    0051), and storing a single alert does not require the lock.
    """

    __tablename__ = "alert_counters"

    project_id: Mapped[int] = build_cascading_foreign_key(
        "projects", primary_key=True, autoincrement=False
    )
    #: Last alert number (iid) of the project, on SQLite only.
    last_iid: Mapped[int] = mapped_column(default=0)


class Alert(BaseWithId):
    """A problem that was reported once or several times.

    Columns hold the fields that lists show and search. Other fields are read from the delivery's
    body.
    """

    __tablename__ = "alerts"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    #: Number within the project: 1, 2, 3 …
    iid: Mapped[int]
    integration_id: Mapped[int | None] = build_set_null_foreign_key("integrations")
    #: Last delivery that changed a field of the alert, or the delivery that opened the alert if no
    #: field has changed. `item_index` refers to an item of this delivery.
    delivery_id: Mapped[int | None] = build_set_null_foreign_key("deliveries", index=True)
    item_index: Mapped[int] = mapped_column(default=0)
    #: SHA-256 of the fingerprint and the monitor
    #: (`domain.alerts.parsing.fingerprint.combine_with_monitor`). Reports with the same value are
    #: grouped. NULL for alerts that are never grouped.
    fingerprint: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: Monitor that is part of the fingerprint. NULL or 0 if there is no monitor.
    monitor_id: Mapped[int | None] = mapped_column(BigInteger)
    #: Status: triggered, acknowledged, resolved or ignored.
    status: Mapped[str] = mapped_column(String(16))
    #: Rank of the severity: critical 0, high 1, medium 2, low 3, info 4, unknown 5.
    severity: Mapped[int] = mapped_column(SmallInteger)
    #: Reason for the severity, as text. NULL for alerts stored before the column was added.
    severity_reason: Mapped[str | None] = mapped_column(String(200))
    #: Severity before it was raised. NULL if the severity was not raised, or was lowered again.
    raised_from: Mapped[int | None] = mapped_column(SmallInteger)
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(String(1000))
    service: Mapped[str | None] = mapped_column(String(100))
    monitoring_tool: Mapped[str | None] = mapped_column(String(100))
    #: Host names, one per line, with at most 255 characters in total, excluding line breaks.
    hosts: Mapped[str] = mapped_column(Text, default="")
    #: Metric expression. Empty if there is none; NULL if it is unknown.
    query: Mapped[str | None] = mapped_column(Text)
    environment: Mapped[str | None] = mapped_column(String(255))
    #: Number of reports.
    events: Mapped[int] = mapped_column(default=1)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    #: Time at which the resolving report arrived. NULL if there was none.
    recovery_received_at: Mapped[datetime | None]
    last_event_at: Mapped[datetime]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_alerts_project_id_iid", "project_id", "iid", unique=True),
        # Each order and each filter of the list has an index that starts with the status. The
        # indexes contain no column that every report changes (events, last_event_at), so that
        # reports update no index.
        Index("ix_alerts_started", "project_id", "status", "started_at", "id"),
        # This index serves all statuses together. Other conditions are checked for each alert.
        Index("ix_alerts_project_id_started_at_id", "project_id", "started_at", "id"),
        Index("ix_alerts_urgency", "project_id", "status", text("(-severity)"), "started_at", "id"),
        build_partial_index(
            "ix_alerts_environment",
            "project_id",
            "environment",
            "status",
            "started_at",
            "id",
            where="environment IS NOT NULL",
        ),
        build_partial_index(
            "ix_alerts_service",
            "project_id",
            "service",
            "status",
            "started_at",
            "id",
            where="service IS NOT NULL",
        ),
        Index("ix_alerts_integration", "integration_id", "status", "started_at", "id"),
        # This index allows at most one open alert per fingerprint, even with concurrent deliveries.
        build_partial_index(
            "uq_alerts_open_fingerprint",
            "fingerprint",
            "project_id",
            unique=True,
            where="fingerprint IS NOT NULL AND status <> 'resolved'",
        ),
        # This index finds the resolved alert that a late recovery belongs to.
        Index("ix_alerts_fingerprint", "fingerprint", "project_id", "id"),
    )


class AlertDay(Base):
    """The number of alerts opened on a day, by environment and severity."""

    __tablename__ = "alert_days"

    project_id: Mapped[int] = build_cascading_foreign_key(
        "projects", primary_key=True, autoincrement=False
    )
    #: Day in UTC.
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    #: Name of the environment. Empty for alerts without an environment.
    environment: Mapped[str] = mapped_column(String(255), primary_key=True)
    severity: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    alerts: Mapped[int]


#: Counts that have not been added to AlertDay yet, on Postgres only. Each delivery adds rows, so
#: that concurrent deliveries do not update the same row.
ALERT_DAY_ADDITIONS = Table(
    "alert_day_additions",
    Base.metadata,
    Column("project_id", BigId, nullable=False),
    Column("day", Date, nullable=False),
    Column("environment", String(255), nullable=False),
    Column("severity", SmallInteger, nullable=False),
    Column("alerts", Integer, nullable=False),
    Index("ix_alert_day_additions_project_id_day", "project_id", "day"),
)


class Occurrence(Base):
    """An item of a delivery and the alert that it opened or changed.

    The row is deleted with the delivery.
    """

    __tablename__ = "occurrences"

    alert_id: Mapped[int] = build_cascading_foreign_key("alerts", primary_key=True)
    delivery_id: Mapped[int] = build_cascading_foreign_key(
        "deliveries", primary_key=True, index=True
    )
    #: Index of the item in the body.
    item_index: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    #: Rank of the action in `domain.alerts.storing.lifecycle.Action`.
    action: Mapped[int] = mapped_column(SmallInteger)
    #: True if the item is a late report of a resolved alert, which was counted but opened nothing.
    is_late: Mapped[bool] = mapped_column(default=False, server_default=false())


class AlertReporter(Base):
    """An integration that has reported an alert, in addition to the alert's own integration."""

    __tablename__ = "alert_reporters"

    alert_id: Mapped[int] = build_cascading_foreign_key(
        "alerts", primary_key=True, autoincrement=False
    )
    integration_id: Mapped[int] = build_cascading_foreign_key(
        "integrations", primary_key=True, autoincrement=False, index=True
    )
    created_at: Mapped[datetime]


class AlertNote(BaseWithId):
    """An entry in an alert's activity: a user's action or note, or a change caused by a report."""

    __tablename__ = "alert_notes"

    alert_id: Mapped[int] = build_cascading_foreign_key("alerts", index=True)
    user_id: Mapped[int | None] = build_set_null_foreign_key("users")
    #: Name of the user, which is kept when the account is deleted.
    user_name: Mapped[str] = mapped_column(String(255))
    #: Value of `domain.alerts.handling.activity.ActivityEntryKind`. A trigger stores changes by
    #: reports as notes.
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    #: Displayed source of the action, if it is neither a web page nor a token.
    via: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    #: Old and new values by column if a report changed them. A trigger writes them (migration
    #: 0051), and the entry is deleted with the delivery.
    changes: Mapped[dict[str, list[Any]] | None] = mapped_column(JSON(none_as_null=True))
    delivery_id: Mapped[int | None] = build_cascading_foreign_key("deliveries", index=True)


class Assignment(Base):
    """The assignee of an alert."""

    __tablename__ = "assignments"

    alert_id: Mapped[int] = build_cascading_foreign_key(
        "alerts", primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)


class AlertBatch(BaseWithId):
    """A status change that a user made to several alerts, selected individually or by a filter."""

    __tablename__ = "alert_batches"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: Project of the alerts. NULL for alerts of all the user's projects.
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects", index=True)
    #: New status of the alerts.
    status: Mapped[str] = mapped_column(String(16))
    #: Query arguments of the list that the user came from.
    list_query: Mapped[str] = mapped_column(Text, default="")
    #: Filter in the format of `domain.alerts.handling.batches`. NULL for selected alerts.
    filter: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Highest alert ID in the batch. Alerts with a higher ID opened after the user confirmed.
    newest_alert_id: Mapped[int] = mapped_column(BigInteger, default=0)
    #: Cursor at which the next slice starts. NULL for the first slice.
    cursor: Mapped[str | None] = mapped_column(String(255))
    #: Number of alerts that matched when the user confirmed. NULL if there were too many to count.
    matched: Mapped[int | None]
    #: Number of alerts whose status was changed.
    changed: Mapped[int] = mapped_column(default=0)
    #: Number of alerts whose status could not be changed.
    left: Mapped[int] = mapped_column(default=0)
    #: Number of alerts whose status was restored by undoing the batch.
    restored: Mapped[int] = mapped_column(default=0)
    #: Number of alerts that were not restored because they have changed since.
    kept: Mapped[int] = mapped_column(default=0)
    #: ID of the last alert in the slice that was undone last.
    undone_to: Mapped[int] = mapped_column(BigInteger, default=0)
    #: State: running, done, undoing or undone.
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_alert_batches_state_id", "state", "id"),
        Index("ix_alert_batches_created_at", "created_at"),
    )


class AlertBatchItem(Base):
    """The state of an alert before a batch changed it.

    There is no foreign key to the alert, which may be deleted in the meantime.
    """

    __tablename__ = "alert_batch_items"

    batch_id: Mapped[int] = build_cascading_foreign_key(
        "alert_batches", primary_key=True, autoincrement=False
    )
    alert_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    old_status: Mapped[str] = mapped_column(String(16))
    old_ended_at: Mapped[datetime | None]
    #: Activity entry for this change. A later entry means that the status has changed since.
    note_id: Mapped[int] = mapped_column(BigInteger)


class SavedAlertFilter(BaseWithId):
    """A named search with filters and order for a list of alerts."""

    __tablename__ = "saved_alert_filters"

    user_id: Mapped[int] = build_cascading_foreign_key("users")
    #: Project of the list. NULL for the list of all projects.
    project_id: Mapped[int | None] = build_cascading_foreign_key("projects")
    name: Mapped[str] = mapped_column(String(100))
    #: Query arguments of the list's URL.
    query: Mapped[str] = mapped_column(Text)
    #: True if the filter is shared with all members who see the project's alerts.
    is_shared: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_saved_alert_filters_user_id_project_id", "user_id", "project_id"),
        Index("ix_saved_alert_filters_project_id_is_shared", "project_id", "is_shared"),
    )


class AlertFollower(Base):
    """A component of the service that receives each change to a project's alerts."""

    __tablename__ = "alert_followers"

    project_id: Mapped[int] = build_cascading_foreign_key(
        "projects", primary_key=True, autoincrement=False
    )
    #: Value of `domain.alerts.change_feed.Follower`.
    follower: Mapped[str] = mapped_column(String(16), primary_key=True)


class AlertChange(BaseWithId):
    """A change to an alert that a follower has not handled yet.

    A trigger on `alerts` adds a row for each follower in the transaction of the change. The row is
    deleted once the change is handled. There are no foreign keys, because an alert may be deleted
    in the meantime.
    """

    __tablename__ = "alert_changes"

    follower: Mapped[str] = mapped_column(String(16))
    project_id: Mapped[int] = mapped_column(BigId)
    alert_id: Mapped[int] = mapped_column(BigId)
    #: Value of `domain.alerts.change_feed.ChangeKind`.
    kind: Mapped[str] = mapped_column(String(16))
    #: Severity of the alert, where 0 is critical. More urgent changes are handled first. If an
    #: alert becomes more urgent, its earlier changes also receive the new severity, because they
    #: are handled first.
    severity: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    #: Time according to the database's clock.
    created_at: Mapped[datetime]
    tries: Mapped[int] = mapped_column(Integer, default=0)
    #: Time of the next attempt. NULL if an attempt is due immediately.
    next_try_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index(
            "ix_alert_changes_follower_severity_project_id_id",
            "follower",
            "severity",
            "project_id",
            "id",
        ),
        # This index shows whether an earlier change to the same alert is queued.
        Index("ix_alert_changes_follower_alert_id_id", "follower", "alert_id", "id"),
    )


class Environment(BaseWithId):
    """An environment of a project. Alerts refer to it by name."""

    __tablename__ = "environments"

    project_id: Mapped[int] = build_cascading_foreign_key("projects")
    name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    #: URL at which the environment runs.
    external_url: Mapped[str | None] = mapped_column(Text)
    #: Time at which the environment was stopped. NULL again after the next deployment.
    stopped_at: Mapped[datetime | None]
    name_key: Mapped[str | None] = build_folded_column()

    __table_args__ = (UniqueConstraint("project_id", "name"),)


sync_folded_column(Environment.name, Environment.name_key)
