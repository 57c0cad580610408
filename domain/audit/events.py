"""Stores audit events in the same transaction as the action that they describe."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import AuditEvent, Group, Project
from models.case_folding import fold_text


class EventKind(StrEnum):
    """The kind of an audit event. Its value is stored and shown."""

    SIGNED_IN = "sign_in.succeeded"
    SIGN_IN_FAILED = "sign_in.failed"
    SIGNED_OUT = "sign_in.ended"
    SECOND_FACTOR_FAILED = "second_factor.failed"
    SECOND_FACTOR_ADDED = "second_factor.added"
    SECOND_FACTOR_REMOVED = "second_factor.removed"
    RECOVERY_CODES_MADE = "recovery_codes.made"
    RECOVERY_CODE_USED = "recovery_codes.used"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 - a name
    PASSWORD_RESET = "password.reset"  # noqa: S105 - a name
    #: Link sent to a user who forgot their password.
    PASSWORD_LINK_SENT = "password.link_sent"  # noqa: S105 - a name
    #: Link to create an account, sent to an email address.
    SIGN_UP_LINK_SENT = "sign_up.link_sent"
    USER_CREATED = "user.created"
    USER_CHANGED = "user.changed"
    EMAIL_CHANGE_REQUESTED = "email.change_requested"
    #: Email address confirmed by a link or by an administrator.
    EMAIL_CONFIRMED = "email.confirmed"
    USER_APPROVED = "user.approved"
    USER_REJECTED = "user.rejected"
    USER_DEACTIVATED = "user.deactivated"
    #: User activated by an administrator or by signing in.
    USER_ACTIVATED = "user.activated"
    USER_LOCKED = "user.locked"
    USER_UNLOCKED = "user.unlocked"
    USER_EXPORTED = "user.exported"
    USER_ERASED = "user.erased"
    CONSENT_GIVEN = "consent.given"
    CONSENT_REFUSED = "consent.refused"
    CONSENT_REVOKED = "consent.revoked"
    DEVICE_APPROVED = "device.approved"
    DEVICE_DENIED = "device.denied"
    CODE_REUSED = "authorization_code.reused"
    CODE_INVALIDATED = "authorization_code.burnt"
    REFRESH_REUSED = "refresh_token.reused"
    TOKEN_ISSUED = "token.issued"  # noqa: S105 - a name
    TOKEN_EXCHANGED = "token.exchanged"  # noqa: S105 - a name
    TOKEN_ROTATED = "token.rotated"  # noqa: S105 - a name
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - a name
    #: Expiry assigned to a token that had none, since the current release requires an expiry.
    TOKEN_EXPIRY_SET = "token.expiry_set"  # noqa: S105 - a name
    APPLICATION_REGISTERED = "application.registered"
    APPLICATION_CHANGED = "application.changed"
    APPLICATION_REMOVED = "application.removed"
    SECRET_RENEWED = "application.secret_renewed"  # noqa: S105 - a name
    SETTING_CHANGED = "setting.changed"
    SIGNING_KEY_ROTATED = "signing_key.rotated"
    GROUP_CREATED = "group.created"
    GROUP_CHANGED = "group.changed"
    GROUP_DELETED = "group.deleted"
    PROJECT_CREATED = "project.created"
    PROJECT_CHANGED = "project.changed"
    PROJECT_ARCHIVED = "project.archived"
    PROJECT_UNARCHIVED = "project.unarchived"
    PROJECT_DELETED = "project.deleted"
    MEMBER_ADDED = "member.added"
    MEMBER_CHANGED = "member.changed"
    MEMBER_REMOVED = "member.removed"
    MEMBER_ROLE_CREATED = "member_role.created"
    MEMBER_ROLE_REMOVED = "member_role.removed"
    #: Membership ended on its expiry date.
    MEMBER_EXPIRED = "member.expired"
    INVITATION_SENT = "invitation.sent"
    INVITATION_CHANGED = "invitation.changed"
    INVITATION_REVOKED = "invitation.revoked"
    INVITATION_ACCEPTED = "invitation.accepted"
    INTEGRATION_CHANGED = "integration.changed"
    ALERT_DELETED = "alert.deleted"
    ALERT_ESCALATED = "alert.escalated"
    #: User paged manually.
    ALERT_PERSON_PAGED = "alert.person_paged"
    ALERT_SNOOZED = "alert.snoozed"
    ALERT_WOKEN = "alert.woken"
    ALERT_ACKNOWLEDGEMENT_RENEWED = "alert.acknowledgement_renewed"
    SILENCE_CREATED = "silence.created"
    SILENCE_CHANGED = "silence.changed"
    SILENCE_EXPIRED = "silence.expired"
    MAINTENANCE_WINDOW_CREATED = "maintenance_window.created"
    MAINTENANCE_WINDOW_CHANGED = "maintenance_window.changed"
    MAINTENANCE_WINDOW_DELETED = "maintenance_window.deleted"
    FLAP_SETTINGS_CHANGED = "flap_settings.changed"
    HEARTBEAT_CHANGED = "heartbeat.changed"
    HEARTBEAT_URL_READ = "heartbeat.url_read"
    ON_CALL_SCHEDULE_CHANGED = "on_call_schedule.changed"
    ON_CALL_OVERRIDE_CHANGED = "on_call_override.changed"
    ON_CALL_SWAP_CHANGED = "on_call_swap.changed"
    ON_CALL_CALENDAR_CHANGED = "on_call_calendar.changed"
    ON_CALL_ABSENCE_CHANGED = "on_call_absence.changed"
    ESCALATION_POLICY_CREATED = "escalation_policy.created"
    ESCALATION_POLICY_CHANGED = "escalation_policy.changed"
    ESCALATION_POLICY_REMOVED = "escalation_policy.removed"
    ALERT_ROUTE_CREATED = "alert_route.created"
    ALERT_ROUTE_CHANGED = "alert_route.changed"
    ALERT_ROUTE_REMOVED = "alert_route.removed"
    INCIDENT_CREATED = "incident.created"
    #: Fields, alerts or comments of an incident changed.
    INCIDENT_CHANGED = "incident.changed"
    INCIDENT_PEOPLE_PAGED = "incident.people_paged"
    INCIDENT_REMOVED = "incident.removed"
    INCIDENT_DOCUMENT_CHANGED = "incident_document.changed"
    HANDOVER_NOTE_CREATED = "handover_note.created"
    HANDOVER_NOTE_REMOVED = "handover_note.removed"
    INCIDENT_RULE_CREATED = "incident_rule.created"
    INCIDENT_RULE_CHANGED = "incident_rule.changed"
    INCIDENT_RULE_REMOVED = "incident_rule.removed"
    REGISTRY_KEY_ROTATED = "registry_key.rotated"
    REGISTRY_REPOSITORY_REMOVED = "registry_repository.removed"
    REGISTRY_TAGS_REMOVED = "registry_tags.removed"
    INTEGRATION_KEY_READ = "integration.key_read"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_REMOVED = "webhook.removed"
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"  # noqa: S105 - a name
    AUDIT_STREAM_CREATED = "audit_stream.created"
    AUDIT_STREAM_CHANGED = "audit_stream.changed"
    AUDIT_STREAM_REMOVED = "audit_stream.removed"
    AUDIT_STREAM_SECRET_ROTATED = "audit_stream.secret_rotated"  # noqa: S105 - a name
    AUDIT_STREAM_TESTED = "audit_stream.tested"
    IDENTITY_PROVIDER_CREATED = "identity_provider.created"
    IDENTITY_PROVIDER_CHANGED = "identity_provider.changed"
    IDENTITY_PROVIDER_REMOVED = "identity_provider.removed"
    IDENTITY_CONNECTED = "identity.connected"
    IDENTITY_DISCONNECTED = "identity.disconnected"
    #: Identity that no longer exists at the provider.
    IDENTITY_ENDED = "identity.ended"
    CONTACT_CREATED = "contact.created"
    CONTACT_CHANGED = "contact.changed"
    CONTACT_CONFIRMED = "contact.confirmed"
    CONTACT_REMOVED = "contact.removed"
    CONTACT_RULE_CREATED = "contact_rule.created"
    CONTACT_RULE_CHANGED = "contact_rule.changed"
    CONTACT_RULE_REMOVED = "contact_rule.removed"
    PAGING_PREFERENCES_CHANGED = "paging_preferences.changed"
    CHANNEL_CREATED = "notification_channel.created"
    CHANNEL_CHANGED = "notification_channel.changed"
    CHANNEL_REMOVED = "notification_channel.removed"
    #: Alerts acknowledged by the link in a message, without a sign-in.
    ALERTS_ACKNOWLEDGED_BY_LINK = "alerts.acknowledged_by_link"
    PAGES_SENT_AGAIN = "pages.sent_again"
    #: Destination of a delivery queue retried immediately by an administrator.
    QUEUE_RETRIED = "queue.retried"
    #: Waiting items of a destination given up by an administrator.
    QUEUE_GIVEN_UP = "queue.given_up"
    #: Clone or fetch of a private or internal project.
    REPOSITORY_DOWNLOADED = "repository_download_operation"
    #: Clone or fetch of a public project. These events are too frequent to store.
    PUBLIC_REPOSITORY_DOWNLOADED = "public_repository_download_operation"


#: Kinds that are sent to the streams of the audit log, but not stored.
STREAMED_ONLY = frozenset({EventKind.PUBLIC_REPOSITORY_DOWNLOADED, EventKind.AUDIT_STREAM_TESTED})


@dataclass(frozen=True, kw_only=True)
class EventActor:
    """The user who performed an action.

    The name is stored in addition to the ID, because the account may be deleted later.
    """

    id: int
    name: str


@dataclass(frozen=True, kw_only=True)
class EventSource:
    """The actor and origin of a request.

    `actor` is None for clients and commands.
    """

    actor: EventActor | None = None
    #: Administrator who impersonates the actor through sudo (`web/api/callers.py`).
    sudo_by: EventActor | None = None
    address: str | None = None
    user_agent: str | None = None
    request_id: str | None = None


class EventNamespace(Protocol):
    """The project or group that an event belongs to."""

    @property
    def project_id(self) -> int | None:
        """The ID of the project, or None for a group."""
        ...

    @property
    def group_id(self) -> int | None:
        """The ID of the group, or None for a project."""
        ...


@dataclass(frozen=True, kw_only=True)
class NamespaceIds:
    """The ID of the project or group that an event belongs to."""

    project_id: int | None = None
    group_id: int | None = None


#: Prefixes of kinds whose subject is the path of a project or a group.
_PATH_SUBJECT_PREFIXES = ("project.", "group.", "member.", "invitation.")
#: Prefixes of all kinds that concern a project or a group.
NAMESPACE_KIND_PREFIXES = (
    *_PATH_SUBJECT_PREFIXES,
    *("alert.", "alert_route.", "alerts.", "escalation_policy.", "flap_settings.", "heartbeat."),
    *("handover_note.", "incident.", "incident_document.", "incident_rule.", "integration."),
    *("maintenance_window.", "notification_channel.", "on_call_override.", "on_call_schedule."),
    *("on_call_swap.", "registry_repository.", "registry_tags."),
    *("repository_download", "silence.", "webhook."),
)


@dataclass(frozen=True, kw_only=True)
class Event:
    """An audit event. None of its fields may contain a secret."""

    kind: EventKind
    #: Account that the event concerns. The owner of the account may read the event.
    user_id: int | None = None
    #: Name of the affected object, such as the path of a project.
    subject: str = ""
    details: Mapping[str, object] | None = None
    #: Actor, if it differs from the actor of the request, for example during a sign-in.
    actor: EventActor | None = None
    #: Project or group that the event concerns. By default, it is looked up by the event's path.
    place: EventNamespace | None = None


def store_event(event: Event, source: EventSource, *, session: Session, now: datetime) -> None:
    """Add an event to the session, to be stored when the transaction commits.

    A database trigger queues the event for every stream of the audit log. For kinds that are only
    streamed, use `domain.audit.streamed_events`.
    """
    if event.kind in STREAMED_ONLY:
        raise ValueError(f"{event.kind} events can only be streamed, not stored.")
    row = build_event_row(event, source, now=now)
    assign_event_namespace(row, event, session=session)
    session.add(row)


def build_event_row(event: Event, source: EventSource, *, now: datetime) -> AuditEvent:
    """Return the database row for an event, with strings truncated to fit their columns."""
    actor = event.actor or source.actor
    address, agent = source.address, source.user_agent
    return AuditEvent(
        created_at=now,
        kind=event.kind.value,
        actor_id=actor.id if actor else None,
        actor_name=_truncate_text(actor.name if actor else "", 255),
        user_id=event.user_id,
        subject=_truncate_text(event.subject, 255),
        details={**(event.details or {}), **_build_sudo_details(source)},
        address=_truncate_text(address or "", 64) or None,
        user_agent=_truncate_text(agent or "", 255) or None,
        request_id=source.request_id,
    )


def assign_event_namespace(row: AuditEvent, event: Event, *, session: Session) -> None:
    """Set the project or group ID in the row of an event.

    The path in the event is not sufficient, since it may later be reused. Raise ValueError if the
    event must have a project or group, but has neither.
    """
    if event.place is not None:
        row.project_id, row.group_id = event.place.project_id, event.place.group_id
        return
    path = row.details.get("project")
    if path is None and event.kind.startswith(_PATH_SUBJECT_PREFIXES):
        path = event.subject
    path = row.details.get("group") if path is None else path
    if not isinstance(path, str) or "\x00" in path:
        if event.kind.startswith(NAMESPACE_KIND_PREFIXES):
            raise ValueError(f"{event.kind} events must name a project or a group.")
        return
    with session.no_autoflush:
        key = fold_text(path)
        row.project_id = session.scalar(select(Project.id).where(Project.path_key == key))
        if row.project_id is None:
            row.group_id = session.scalar(select(Group.id).where(Group.path_key == key))


def _build_sudo_details(source: EventSource) -> dict[str, object]:
    by = source.sudo_by
    return {} if by is None else {"sudo_by": by.name, "sudo_by_id": by.id}


def _truncate_text(text: str, length: int) -> str:
    """Replace characters that cannot be stored, and truncate a string to a column's length."""
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")[:length]
