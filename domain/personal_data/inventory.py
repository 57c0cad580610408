"""The inventory of tables with personal data; export, erasure and documentation use it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import ColumnElement, func, or_

from domain.accounts.users import UserView
from domain.mail.outbox import without_links
from models import (
    AccessToken,
    AlertBatch,
    AlertNote,
    Application,
    Assignment,
    AssignmentNotice,
    AuditEvent,
    AuditStreamEntry,
    Authorization,
    BackchannelSession,
    Base,
    CallCount,
    ChangeNotice,
    CommitStatus,
    Consent,
    Contact,
    Deployment,
    DeviceAuthorization,
    EmailConfirmation,
    EscalationPage,
    Group,
    IdempotentRequest,
    Identity,
    Incident,
    IncidentAssignee,
    IncidentNote,
    Invitation,
    Mail,
    MaintenanceWindow,
    Member,
    OnCallFeed,
    OnCallOverride,
    OnCallSwap,
    OnCallTurn,
    PageRecipient,
    Passkey,
    PersonalAccessToken,
    ProjectRelease,
    RecoveryCode,
    SavedAlertFilter,
    SignIn,
    Silence,
    TotpDevice,
    User,
)
from models.folding import fold


class ErasureRule(StrEnum):
    """The effect of an erasure on rows; the value describes it."""

    DELETED = "deleted"
    PSEUDONYM = "kept under a pseudonym"
    HANDED_ON = "transferred to another user, or deleted"


@dataclass(frozen=True, kw_only=True)
class PersonalDataTable:
    """A table with personal data."""

    #: Its name in an export.
    name: str
    #: Its content, in words.
    about: str
    model: type[Base]
    #: The exported columns; keyed hashes and keys are left out.
    exported: tuple[str, ...]
    #: The condition for the rows of a person; by default those with the id of the person.
    rows: Callable[[UserView], ColumnElement[bool]] | None = None
    #: By column: what is exported of a text that may contain secrets.
    rewritten: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    on_erasure: ErasureRule = ErasureRule.DELETED

    def of(self, user: UserView) -> ColumnElement[bool]:
        """Return the condition for the rows of a person."""
        return self.rows(user) if self.rows else self.model.__table__.c.user_id == user.id


ALERT_DATA = (
    PersonalDataTable(
        name="contacts",
        about="Addresses at which the person is paged, and when something was sent there",
        model=Contact,
        exported=(
            "type",
            "label",
            "shown_address",
            "created_at",
            "confirmed_at",
            "last_sent_at",
            "last_failed_at",
            "last_error",
        ),
    ),
    PersonalDataTable(
        name="paging",
        about="Quiet hours, when the person was last paged, and the pages",
        model=PageRecipient,
        exported=(
            "time_zone",
            "quiet_from",
            "quiet_until",
            "critical_breaks_quiet",
            "wants_follow_ups",
            "last_page_at",
            "last_message_at",
            "last_page_severity",
        ),
    ),
    PersonalDataTable(
        name="assignments",
        about="Alerts assigned to the person",
        model=Assignment,
        exported=("alert_id",),
    ),
    PersonalDataTable(
        name="assignment_notices",
        about="Assignments that the person is told of by e-mail, until that is written",
        model=AssignmentNotice,
        exported=("alert_id", "incident_id", "by_name", "created_at"),
    ),
    PersonalDataTable(
        name="alert_activity",
        about="The person's actions and comments on alerts",
        model=AlertNote,
        exported=("alert_id", "kind", "text", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="alert_batches",
        about="Bulk changes of alerts, for two days",
        model=AlertBatch,
        exported=("id", "project_id", "status", "list_query", "changed", "state", "created_at"),
    ),
    PersonalDataTable(
        name="saved_alert_filters",
        about="Alert filters that the person saved",
        model=SavedAlertFilter,
        exported=("project_id", "name", "query", "is_shared", "created_at"),
    ),
    PersonalDataTable(
        name="on_call_turns",
        about="Positions in the rotations of on-call schedules, current and former",
        model=OnCallTurn,
        exported=("rotation_id", "position"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_overrides",
        about="On-call overrides for the person, or created by the person",
        model=OnCallOverride,
        rows=lambda user: or_(
            OnCallOverride.user_id == user.id, OnCallOverride.created_by == user.id
        ),
        exported=("schedule_id", "starts_at", "ends_at", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_swaps",
        about="Swaps of on-call shifts with the person, or arranged by the person",
        model=OnCallSwap,
        rows=lambda user: or_(
            OnCallSwap.user_id == user.id,
            OnCallSwap.other_user_id == user.id,
            OnCallSwap.created_by == user.id,
        ),
        exported=(
            "schedule_id",
            "starts_at",
            "ends_at",
            "other_starts_at",
            "other_ends_at",
            "created_at",
        ),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_feeds",
        about="On-call calendars that the person subscribed to",
        model=OnCallFeed,
        exported=("schedule_id", "created_at", "last_read_at"),
    ),
    PersonalDataTable(
        name="silences",
        about="Silences that the person created or ended, for a year after their end",
        model=Silence,
        rows=lambda user: or_(Silence.created_by_id == user.id, Silence.ended_by_id == user.id),
        exported=("project_id", "matchers", "comment", "starts_at", "ends_at", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="maintenance_windows",
        about="Maintenance windows that the person created",
        model=MaintenanceWindow,
        rows=lambda user: MaintenanceWindow.created_by_id == user.id,
        exported=("project_id", "name", "local_start", "time_zone", "rule", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="escalation_pages",
        about="Alerts that the person was paged for, and when, for 90 days",
        model=EscalationPage,
        exported=("alert_id", "round", "step", "paged_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
)


#: In the order of export and erasure.
PERSONAL_DATA = (
    PersonalDataTable(
        name="account",
        about="User name, e-mail address, display name, time zone, and when the account was "
        "created and last used",
        model=User,
        rows=lambda user: User.id == user.id,
        exported=(
            "id",
            "username",
            "email",
            "name",
            "is_admin",
            "state",
            "time_zone",
            "created_at",
            "last_sign_in_at",
            "password_changed_at",
            "email_confirmed_at",
            "idle_noticed_at",
        ),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="sign_ins",
        about="Signed-in browsers, with IP address and user agent",
        model=SignIn,
        exported=("created_at", "expires_at", "address", "user_agent", "methods"),
    ),
    PersonalDataTable(
        name="backchannel_sessions",
        about="Sign-ins of whose end applications are told, until they have been",
        model=BackchannelSession,
        exported=("application_id", "due_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="authenticator_apps",
        about="When authenticator apps were set up",
        model=TotpDevice,
        exported=("created_at", "confirmed_at"),
    ),
    PersonalDataTable(
        name="passkeys",
        about="Names of passkeys, and when they were used",
        model=Passkey,
        exported=("name", "created_at", "last_used_at"),
    ),
    PersonalDataTable(
        name="identities",
        about="Accounts at identity providers: subject, name and e-mail address there, last use",
        model=Identity,
        exported=("subject", "name", "email", "created_at", "last_used_at", "checked_at"),
    ),
    PersonalDataTable(
        name="recovery_codes",
        about="When recovery codes were created and used",
        model=RecoveryCode,
        exported=("created_at", "used_at"),
    ),
    PersonalDataTable(
        name="personal_access_tokens",
        about="Personal access tokens: names, scopes, last use and its IP address",
        model=PersonalAccessToken,
        exported=(
            "id",
            "name",
            "description",
            "scopes",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
            "last_used_address",
        ),
    ),
    PersonalDataTable(
        name="access_tokens",
        about="Tokens of applications: scopes, last use, IP addresses and user agents",
        model=AccessToken,
        exported=(
            "application_id",
            "scopes",
            "created_at",
            "expires_at",
            "revoked_at",
            "address",
            "user_agent",
            "last_used_at",
            "last_used_address",
        ),
    ),
    PersonalDataTable(
        name="api_calls",
        about="API operations that the person's tokens called on each day, how often, and the last "
        "IP address",
        model=CallCount,
        exported=(
            "day",
            "operation",
            "application_id",
            "personal_token_id",
            "count",
            "first_at",
            "last_at",
            "last_address",
        ),
    ),
    PersonalDataTable(
        name="change_notices",
        about="API changes that the person was notified of by e-mail",
        model=ChangeNotice,
        exported=("change_id", "told_at"),
    ),
    PersonalDataTable(
        name="authorizations",
        about="Applications that the person authorized, with scopes",
        model=Authorization,
        exported=("application_id", "scopes", "redirect_uri", "created_at", "revoked_at"),
    ),
    PersonalDataTable(
        name="consents",
        about="Scopes that the person does not need to approve again",
        model=Consent,
        exported=("application_id", "scopes", "created_at", "updated_at"),
    ),
    PersonalDataTable(
        name="idempotent_requests",
        about="Requests with an Idempotency-Key and their responses, for a day",
        model=IdempotentRequest,
        exported=("claimed_at", "status"),
    ),
    PersonalDataTable(
        name="devices",
        about="Devices that requested access, with IP address and user agent",
        model=DeviceAuthorization,
        exported=(
            "application_id",
            "scopes",
            "created_at",
            "address",
            "user_agent",
            "approved_at",
            "denied_at",
        ),
    ),
    PersonalDataTable(
        name="personal_namespace",
        about="The personal namespace",
        model=Group,
        rows=lambda user: Group.owner_id == user.id,
        exported=("path", "description", "created_at"),
    ),
    PersonalDataTable(
        name="memberships",
        about="Roles in groups and projects",
        model=Member,
        exported=("group_id", "project_id", "role", "created_at", "expires_at"),
    ),
    PersonalDataTable(
        name="invitations",
        about="Invitations to the e-mail address, or sent by the person",
        model=Invitation,
        rows=lambda user: or_(
            Invitation.invited_by == user.id, Invitation.email_key == fold(user.email)
        ),
        exported=("group_id", "project_id", "role", "created_at", "expires_at"),
    ),
    PersonalDataTable(
        name="applications",
        about="Applications that the person registered",
        model=Application,
        rows=lambda user: Application.owner_id == user.id,
        exported=("uid", "name", "redirect_uris", "scopes", "created_at", "last_used_at"),
        on_erasure=ErasureRule.HANDED_ON,
    ),
    *ALERT_DATA,
    PersonalDataTable(
        name="incident_assignments",
        about="Incidents assigned to the person",
        model=IncidentAssignee,
        exported=("incident_id",),
    ),
    PersonalDataTable(
        name="incidents",
        about="Incidents that the person opened",
        model=Incident,
        rows=lambda user: Incident.author_id == user.id,
        exported=("project_id", "iid", "title", "description", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="incident_timeline",
        about="The person's actions and comments on incidents",
        model=IncidentNote,
        exported=("incident_id", "kind", "text", "details", "is_internal", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="deployments",
        about="Deployments that the person's tokens reported",
        model=Deployment,
        exported=("project_id", "iid", "sha", "ref", "status", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="commit_statuses",
        about="Statuses of commits that the person's tokens reported",
        model=CommitStatus,
        exported=("project_id", "sha", "name", "status", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="releases",
        about="Releases that the person's tokens created",
        model=ProjectRelease,
        exported=("project_id", "tag_name", "name", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="mails",
        about="E-mails to the person, for 90 days",
        model=Mail,
        rows=lambda user: func.lower(Mail.recipient) == user.email.lower(),
        exported=("recipient", "subject", "text", "created_at", "sent_at"),
        # Only who reads the mail of the address may have the links.
        rewritten={"text": without_links},
    ),
    PersonalDataTable(
        name="email_confirmations",
        about="The e-mail address that waits to be confirmed, for 30 days at the most",
        model=EmailConfirmation,
        exported=("email", "created_at"),
    ),
    PersonalDataTable(
        name="audit_events",
        about="The person's actions and changes to the account, with IP address and user agent",
        model=AuditEvent,
        rows=lambda user: or_(AuditEvent.actor_id == user.id, AuditEvent.user_id == user.id),
        exported=(
            "created_at",
            "kind",
            "actor_name",
            "subject",
            "details",
            "address",
            "user_agent",
            "request_id",
        ),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="streamed_events",
        about="Clones of public projects, with IP address and user agent, until they have been "
        "sent to the audit streams",
        model=AuditStreamEntry,
        rows=lambda user: AuditStreamEntry.actor_id == user.id,
        exported=("created_at", "payload"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
)
