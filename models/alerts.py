"""Alerts, where they come from, what became of them, and who follows them."""

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

from models.base import Base, BigId, Numbered, belongs_to, partial_index, refers_to
from models.folding import folded, keep_folded


class Integration(Numbered):
    """A receiver of alerts, or the link to an external on-call tool."""

    __tablename__ = "integrations"

    project_id: Mapped[int] = belongs_to("projects")
    #: A name of `domain/alerts/formats/registry.py`; any text, so a format needs no migration.
    type: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(255))
    active: Mapped[bool] = mapped_column(default=True)
    #: 16 hexadecimal characters: the last part of the receiving URL.
    endpoint_identifier: Mapped[str] = mapped_column(String(32), unique=True)
    #: Keyed hash of the key, for the comparison with the one in a request.
    key_digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    #: The encrypted key, because maintainers can display it again.
    key_ciphertext: Mapped[str] = mapped_column(Text)
    key_last_used_at: Mapped[datetime | None]
    previous_key_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    previous_key_expires_at: Mapped[datetime | None]
    previous_key_last_used_at: Mapped[datetime | None]
    #: URL of Prometheus or of the on-call tool, depending on the type.
    api_url: Mapped[str | None] = mapped_column(Text)
    #: A payload of the sender, and the mapping of its values to the fields of an alert
    #: (`domain.alerts.reading.mapping`).
    sample: Mapped[str | None] = mapped_column(Text)
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: An open alert without a report for so long is resolved; NULL: never.
    resolve_after_minutes: Mapped[int | None]
    #: Integrations with the same monitor share alerts (`domain.alerts.integrations.monitors`).
    #: 0: its fingerprints are stored unchanged. NULL: as 0, until the upgrade to monitors is done.
    monitor_id: Mapped[int | None] = mapped_column(BigInteger)
    #: The time of the last change of the monitor; NULL once all alerts have followed.
    monitor_changed_at: Mapped[datetime | None]
    #: Whether senders may give the key as the parameter `key` of the URL.
    accepts_key_in_url: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: The time of the first of the requests since the last accepted one, if all were rejected
    #: (`domain.alerts.integrations.rejections`).
    rejected_since: Mapped[datetime | None]
    created_at: Mapped[datetime]

    __table_args__ = (
        # Partial index: few integrations wait for their alerts to follow.
        partial_index(
            "ix_integrations_monitor_pending",
            "id",
            where="monitor_id IS NULL OR monitor_changed_at IS NOT NULL",
        ),
        Index("ix_integrations_project_id_type_id", "project_id", "type", "id"),
        # For senders whose URL does not name the integration.
        Index("ix_integrations_key_digest", "key_digest"),
        Index("ix_integrations_previous_key_digest", "previous_key_digest"),
    )


class Delivery(Numbered):
    """One request to a receiver and its outcome.

    The body is stored here only; an alert refers to the delivery whose report it shows.
    """

    __tablename__ = "deliveries"

    project_id: Mapped[int] = belongs_to("projects")
    #: NULL once the integration was deleted; its alerts still need their payload.
    integration_id: Mapped[int | None] = refers_to("integrations")
    #: The format of the body, a name of the same registry.
    format: Mapped[str] = mapped_column(String(16))
    #: The mapping that it was read with (`domain.alerts.reading.mapping`); NULL if unknown.
    mapping: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Whether a user sent it from the page of the integration.
    is_test: Mapped[bool] = mapped_column(default=False)
    received_at: Mapped[datetime]
    #: HTTP status code of the response.
    status_code: Mapped[int] = mapped_column(SmallInteger)
    #: The reason of a refusal, in a sentence.
    reason: Mapped[str | None] = mapped_column(Text)
    sender: Mapped[str] = mapped_column(String(64))
    #: In bytes as received; also set if the body was refused unread and is not stored.
    size: Mapped[int]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    opened: Mapped[int] = mapped_column(default=0)
    joined: Mapped[int] = mapped_column(default=0)
    resolved: Mapped[int] = mapped_column(default=0)
    #: One sentence for each item that was refused and each guess, such as an unreadable time.
    parse_warnings: Mapped[list[str]] = mapped_column("remarks", JSON, default=list)
    truncated_alerts: Mapped[int] = mapped_column(default=0)
    #: The number of items that a rule of the mapping dropped.
    dropped: Mapped[int] = mapped_column(default=0, server_default="0")
    #: From the arrival of the request until this row was written, in microseconds.
    duration: Mapped[int | None]
    #: The number of later refusals like this one that are counted here instead of stored.
    skipped: Mapped[int] = mapped_column(default=0)
    #: Of a refused request, as its client calls itself.
    user_agent: Mapped[str | None] = mapped_column(String(255))

    #: The delivery as which a refused one was stored after all.
    replayed_as: Mapped[int | None] = mapped_column(BigId)

    __table_args__ = (
        Index("ix_deliveries_integration_id_id", "integration_id", "id"),
        partial_index("ix_deliveries_refused", "integration_id", "id", where="status_code >= 300"),
        # Each of the other selections of the log, which would else be searched to its end.
        # Statistics (migration 0101) tell Postgres how few rows the condition leaves.
        partial_index(
            "ix_deliveries_warned",
            "integration_id",
            "id",
            where="CAST(remarks AS TEXT) <> '[]'",
        ),
        partial_index("ix_deliveries_tests", "integration_id", "id", where="is_test"),
        Index("ix_deliveries_project_id", "project_id"),
    )


class AlertCounter(Base):
    """The row that batches and changes of status lock, so that they run one by one in a project.

    On SQLite it also counts the alerts. On Postgres a sequence does (migration 0051), and single
    alerts are stored without this lock.
    """

    __tablename__ = "alert_counters"

    project_id: Mapped[int] = belongs_to("projects", primary_key=True, autoincrement=False)
    #: On SQLite, the last alert number (iid) of the project.
    last_iid: Mapped[int] = mapped_column(default=0)


class Alert(Numbered):
    """A problem that was reported once or several times.

    Columns hold the fields that lists show and search; others are read from the delivery's body.
    """

    __tablename__ = "alerts"

    project_id: Mapped[int] = belongs_to("projects")
    #: Number within the project: 1, 2, 3 …
    iid: Mapped[int]
    integration_id: Mapped[int | None] = refers_to("integrations")
    #: The last delivery that changed a field of the alert, else the one that opened it, and the
    #: index of the item.
    delivery_id: Mapped[int | None] = refers_to("deliveries", index=True)
    item_index: Mapped[int] = mapped_column(default=0)
    #: SHA-256, combined with the monitor (`domain.alerts.reading.fingerprint.within_monitor`);
    #: reports with the same one are grouped. NULL: never grouped.
    fingerprint: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    #: The monitor that the fingerprint is combined with; NULL or 0: none.
    monitor_id: Mapped[int | None] = mapped_column(BigInteger)
    #: triggered, acknowledged, resolved or ignored.
    status: Mapped[str] = mapped_column(String(16))
    #: Rank: critical 0, high 1, medium 2, low 3, info 4, unknown 5.
    severity: Mapped[int] = mapped_column(SmallInteger)
    #: The reason for the severity, as a text; NULL for alerts older than the column.
    severity_reason: Mapped[str | None] = mapped_column(String(200))
    #: The severity before it was raised; NULL if it was not, or fell back.
    raised_from: Mapped[int | None] = mapped_column(SmallInteger)
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(String(1000))
    service: Mapped[str | None] = mapped_column(String(100))
    monitoring_tool: Mapped[str | None] = mapped_column(String(100))
    #: Host names, one per line; at most 255 characters without the line breaks.
    hosts: Mapped[str] = mapped_column(Text, default="")
    #: The expression of the metric; empty if there is none, NULL if it is unknown.
    query: Mapped[str | None] = mapped_column(Text)
    environment: Mapped[str | None] = mapped_column(String(255))
    #: The number of reports.
    events: Mapped[int] = mapped_column(default=1)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    #: When the report arrived that resolved it; NULL if none did.
    recovery_received_at: Mapped[datetime | None]
    last_event_at: Mapped[datetime]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("uq_alerts_project_id_iid", "project_id", "iid", unique=True),
        # One for each order and each filter of the list, beginning with the status. None contains a
        # column that every report changes (events, last_event_at), so a report updates no index.
        Index("ix_alerts_started", "project_id", "status", "started_at", "id"),
        # One for all statuses together; other conditions are checked for each alert.
        Index("ix_alerts_project_id_started_at_id", "project_id", "started_at", "id"),
        Index("ix_alerts_urgency", "project_id", "status", text("(-severity)"), "started_at", "id"),
        partial_index(
            "ix_alerts_environment",
            "project_id",
            "environment",
            "status",
            "started_at",
            "id",
            where="environment IS NOT NULL",
        ),
        partial_index(
            "ix_alerts_service",
            "project_id",
            "service",
            "status",
            "started_at",
            "id",
            where="service IS NOT NULL",
        ),
        Index("ix_alerts_integration", "integration_id", "status", "started_at", "id"),
        # At most one open alert per fingerprint, also with concurrent deliveries.
        partial_index(
            "uq_alerts_open_fingerprint",
            "fingerprint",
            "project_id",
            unique=True,
            where="fingerprint IS NOT NULL AND status <> 'resolved'",
        ),
        # For the resolved alert that a late recovery belongs to.
        Index("ix_alerts_fingerprint", "fingerprint", "project_id", "id"),
    )


class AlertDay(Base):
    """The number of alerts opened on a day, by environment and severity."""

    __tablename__ = "alert_days"

    project_id: Mapped[int] = belongs_to("projects", primary_key=True, autoincrement=False)
    #: In UTC.
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    #: Empty for alerts without an environment.
    environment: Mapped[str] = mapped_column(String(255), primary_key=True)
    severity: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    alerts: Mapped[int]


#: On Postgres, the counts that are not added to AlertDay yet: one row per delivery, so that no two
#: deliveries update the same row.
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
    """An item of a delivery with the alert that it opened or changed; deleted with the delivery."""

    __tablename__ = "occurrences"

    alert_id: Mapped[int] = belongs_to("alerts", primary_key=True)
    delivery_id: Mapped[int] = belongs_to("deliveries", primary_key=True, index=True)
    #: Index among the items of the body.
    item_index: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    #: The rank of its `domain.alerts.storing.lifecycle.Action`.
    action: Mapped[int] = mapped_column(SmallInteger)
    #: Whether it is a late report of a resolved alert: it was counted, and opened nothing.
    is_late: Mapped[bool] = mapped_column(default=False, server_default=false())


class AlertReporter(Base):
    """Another integration than the alert's own that has reported the alert."""

    __tablename__ = "alert_reporters"

    alert_id: Mapped[int] = belongs_to("alerts", primary_key=True, autoincrement=False)
    integration_id: Mapped[int] = belongs_to(
        "integrations", primary_key=True, autoincrement=False, index=True
    )
    created_at: Mapped[datetime]


class AlertNote(Numbered):
    """An entry of an alert's activity: an action or note of a user, or a change by a report."""

    __tablename__ = "alert_notes"

    alert_id: Mapped[int] = belongs_to("alerts", index=True)
    user_id: Mapped[int | None] = refers_to("users")
    #: Kept when the account is deleted.
    user_name: Mapped[str] = mapped_column(String(255))
    #: note, status, assignee or page.
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    #: From where the user acted, if it was no page and no token: in words, as in a sentence.
    via: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    #: Old and new values by column, if a report changed them. A trigger writes it (migration 0051),
    #: and the entry is deleted with the delivery.
    changes: Mapped[dict[str, list[Any]] | None] = mapped_column(JSON(none_as_null=True))
    delivery_id: Mapped[int | None] = belongs_to("deliveries", index=True)


class Assignment(Base):
    """The assignee of an alert."""

    __tablename__ = "assignments"

    alert_id: Mapped[int] = belongs_to("alerts", primary_key=True, autoincrement=False)
    user_id: Mapped[int] = belongs_to("users", index=True)


class AlertBatch(Numbered):
    """A status that a user gave to several alerts: selected ones, or all that match a filter."""

    __tablename__ = "alert_batches"

    user_id: Mapped[int] = belongs_to("users", index=True)
    #: NULL for alerts of all projects of the user.
    project_id: Mapped[int | None] = belongs_to("projects", index=True)
    #: The new status.
    status: Mapped[str] = mapped_column(String(16))
    #: The arguments of the list that the user came from.
    list_query: Mapped[str] = mapped_column(Text, default="")
    #: What `domain.alerts.handling.batches` stores of the filter; NULL for selected alerts.
    filter: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Alerts with a higher id opened after the user confirmed, and are left alone.
    newest_alert_id: Mapped[int] = mapped_column(BigInteger, default=0)
    #: Where the next slice begins; NULL for the first one.
    cursor: Mapped[str | None] = mapped_column(String(255))
    #: The number that matched when the user confirmed; NULL if there were too many to count.
    matched: Mapped[int | None]
    #: The number of alerts that have another status through it,
    changed: Mapped[int] = mapped_column(default=0)
    #: and of those that could not get it.
    left: Mapped[int] = mapped_column(default=0)
    #: While it is undone: the number that have their status again,
    restored: Mapped[int] = mapped_column(default=0)
    #: of those that somebody changed since,
    kept: Mapped[int] = mapped_column(default=0)
    #: and the last alert of the slice before.
    undone_to: Mapped[int] = mapped_column(BigInteger, default=0)
    #: running, done, undoing or undone.
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_alert_batches_state_id", "state", "id"),
        Index("ix_alert_batches_created_at", "created_at"),
    )


class AlertBatchItem(Base):
    """An alert that a batch changed, as it was before.

    There is no foreign key to the alert, which may be deleted meanwhile.
    """

    __tablename__ = "alert_batch_items"

    batch_id: Mapped[int] = belongs_to("alert_batches", primary_key=True, autoincrement=False)
    alert_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    old_status: Mapped[str] = mapped_column(String(16))
    old_ended_at: Mapped[datetime | None]
    #: The entry of the activity that says so: with a later one, somebody changed the status since.
    note_id: Mapped[int] = mapped_column(BigInteger)


class SavedAlertFilter(Numbered):
    """The search, filters and order of a list of alerts, under a name."""

    __tablename__ = "saved_alert_filters"

    user_id: Mapped[int] = belongs_to("users")
    #: NULL for the list of all projects.
    project_id: Mapped[int | None] = belongs_to("projects")
    name: Mapped[str] = mapped_column(String(100))
    #: The arguments of the list's address.
    query: Mapped[str] = mapped_column(Text)
    #: Whether all members who see the project's alerts have it.
    is_shared: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_saved_alert_filters_user_id_project_id", "user_id", "project_id"),
        Index("ix_saved_alert_filters_project_id_is_shared", "project_id", "is_shared"),
    )


class AlertFollower(Base):
    """A part of the service that is told of each change of a project's alerts."""

    __tablename__ = "alert_followers"

    project_id: Mapped[int] = belongs_to("projects", primary_key=True, autoincrement=False)
    #: A `domain.alerts.change_feed.Follower`.
    follower: Mapped[str] = mapped_column(String(16), primary_key=True)


class AlertChange(Numbered):
    """A change of an alert that one follower has not handled yet; deleted when it has.

    A trigger on `alerts` adds one for each follower in the transaction of the change. There are no
    foreign keys: an alert may be deleted meanwhile.
    """

    __tablename__ = "alert_changes"

    follower: Mapped[str] = mapped_column(String(16))
    project_id: Mapped[int] = mapped_column(BigId)
    alert_id: Mapped[int] = mapped_column(BigId)
    #: A `domain.alerts.change_feed.ChangeKind`.
    kind: Mapped[str] = mapped_column(String(16))
    #: That of the alert, 0 for critical: more urgent changes are handled first. A change that
    #: makes an alert more urgent gives its severity to the earlier ones, which it waits for.
    severity: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    #: By the clock of the database.
    created_at: Mapped[datetime]
    tries: Mapped[int] = mapped_column(Integer, default=0)
    #: NULL: at once.
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
        # For the question whether an earlier change of the same alert waits.
        Index("ix_alert_changes_follower_alert_id_id", "follower", "alert_id", "id"),
    )


class Environment(Numbered):
    """An environment of a project; alerts refer to it by its name."""

    __tablename__ = "environments"

    project_id: Mapped[int] = belongs_to("projects")
    name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    #: Where it runs.
    external_url: Mapped[str | None] = mapped_column(Text)
    #: When it was stopped; NULL again after the next deployment.
    stopped_at: Mapped[datetime | None]
    name_key: Mapped[str | None] = folded()

    __table_args__ = (UniqueConstraint("project_id", "name"),)


keep_folded(Environment.name, Environment.name_key)
