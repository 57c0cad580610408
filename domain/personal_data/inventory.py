"""The inventory of tables with personal data; export, erasure and documentation use it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import ColumnElement, SQLColumnExpression, func, or_

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
    IdempotentRequest,
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
    #: The condition for the rows of a person.
    of: Callable[[UserView], ColumnElement[bool]]
    #: The exported columns; keyed hashes and keys are left out.
    exported: tuple[str, ...]
    #: By column: what is exported of a text that may contain secrets.
    rewritten: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    on_erasure: ErasureRule


def by(column: SQLColumnExpression[int | None]) -> Callable[[UserView], ColumnElement[bool]]:
    """Return the condition for rows in which a column has the id of a person."""

    def is_theirs(user: UserView) -> ColumnElement[bool]:
        condition: ColumnElement[bool] = column == user.id
        return condition

    return is_theirs


ALERT_DATA = (
    PersonalDataTable(
        name="contacts",
        about="Addresses at which the person is paged, and when something was sent there",
        model=Contact,
        of=by(Contact.user_id),
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
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="paging",
        about="Quiet hours, when the person was last paged, and the pages",
        model=PageRecipient,
        of=by(PageRecipient.user_id),
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
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="assignments",
        about="Alerts assigned to the person",
        model=Assignment,
        of=by(Assignment.user_id),
        exported=("alert_id",),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="assignment_notices",
        about="Assignments that the person is told of by e-mail, until that is written",
        model=AssignmentNotice,
        of=by(AssignmentNotice.user_id),
        exported=("alert_id", "incident_id", "by_name", "created_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="alert_activity",
        about="The person's actions and comments on alerts",
        model=AlertNote,
        of=by(AlertNote.user_id),
        exported=("alert_id", "kind", "text", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="alert_batches",
        about="Bulk changes of alerts, for two days",
        model=AlertBatch,
        of=by(AlertBatch.user_id),
        exported=("id", "project_id", "status", "list_query", "changed", "state", "created_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="saved_alert_filters",
        about="Alert filters that the person saved",
        model=SavedAlertFilter,
        of=by(SavedAlertFilter.user_id),
        exported=("project_id", "name", "query", "is_shared", "created_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="on_call_turns",
        about="Positions in the rotations of on-call schedules, current and former",
        model=OnCallTurn,
        of=by(OnCallTurn.user_id),
        exported=("rotation_id", "position"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_overrides",
        about="On-call overrides for the person, or created by the person",
        model=OnCallOverride,
        of=lambda user: or_(
            OnCallOverride.user_id == user.id, OnCallOverride.created_by == user.id
        ),
        exported=("schedule_id", "starts_at", "ends_at", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_swaps",
        about="Swaps of on-call shifts with the person, or arranged by the person",
        model=OnCallSwap,
        of=lambda user: or_(
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
        of=by(OnCallFeed.user_id),
        exported=("schedule_id", "created_at", "last_read_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="silences",
        about="Silences that the person created or ended, for a year after their end",
        model=Silence,
        of=lambda user: or_(Silence.created_by_id == user.id, Silence.ended_by_id == user.id),
        exported=("project_id", "matchers", "comment", "starts_at", "ends_at", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="maintenance_windows",
        about="Maintenance windows that the person created",
        model=MaintenanceWindow,
        of=by(MaintenanceWindow.created_by_id),
        exported=("project_id", "name", "local_start", "time_zone", "rule", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="escalation_pages",
        about="Alerts that the person was paged for, and when, for 90 days",
        model=EscalationPage,
        of=by(EscalationPage.user_id),
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
        of=by(User.id),
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
        ),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="sign_ins",
        about="Signed-in browsers, with IP address and user agent",
        model=SignIn,
        of=by(SignIn.user_id),
        exported=("created_at", "expires_at", "address", "user_agent", "methods"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="authenticator_apps",
        about="When authenticator apps were set up",
        model=TotpDevice,
        of=by(TotpDevice.user_id),
        exported=("created_at", "confirmed_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="passkeys",
        about="Names of passkeys, and when they were used",
        model=Passkey,
        of=by(Passkey.user_id),
        exported=("name", "created_at", "last_used_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="recovery_codes",
        about="When recovery codes were created and used",
        model=RecoveryCode,
        of=by(RecoveryCode.user_id),
        exported=("created_at", "used_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="personal_access_tokens",
        about="Personal access tokens: names, scopes, last use and its IP address",
        model=PersonalAccessToken,
        of=by(PersonalAccessToken.user_id),
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
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="access_tokens",
        about="Tokens of applications: scopes, last use, IP addresses and user agents",
        model=AccessToken,
        of=by(AccessToken.user_id),
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
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="api_calls",
        about="API operations that the person's tokens called on each day, how often, and the last "
        "IP address",
        model=CallCount,
        of=by(CallCount.user_id),
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
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="change_notices",
        about="API changes that the person was notified of by e-mail",
        model=ChangeNotice,
        of=by(ChangeNotice.user_id),
        exported=("change_id", "told_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="authorizations",
        about="Applications that the person authorized, with scopes",
        model=Authorization,
        of=by(Authorization.user_id),
        exported=("application_id", "scopes", "redirect_uri", "created_at", "revoked_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="consents",
        about="Scopes that the person does not need to approve again",
        model=Consent,
        of=by(Consent.user_id),
        exported=("application_id", "scopes", "created_at", "updated_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="idempotent_requests",
        about="Requests with an Idempotency-Key and their responses, for a day",
        model=IdempotentRequest,
        of=by(IdempotentRequest.user_id),
        exported=("claimed_at", "status"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="devices",
        about="Devices that requested access, with IP address and user agent",
        model=DeviceAuthorization,
        of=by(DeviceAuthorization.user_id),
        exported=(
            "application_id",
            "scopes",
            "created_at",
            "address",
            "user_agent",
            "approved_at",
            "denied_at",
        ),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="memberships",
        about="Roles in groups and projects",
        model=Member,
        of=by(Member.user_id),
        exported=("group_id", "project_id", "role", "created_at", "expires_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="invitations",
        about="Invitations to the e-mail address, or sent by the person",
        model=Invitation,
        of=lambda user: or_(
            Invitation.invited_by == user.id, Invitation.email_key == fold(user.email)
        ),
        exported=("group_id", "project_id", "role", "created_at", "expires_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="applications",
        about="Applications that the person registered",
        model=Application,
        of=by(Application.owner_id),
        exported=("uid", "name", "redirect_uris", "scopes", "created_at", "last_used_at"),
        on_erasure=ErasureRule.HANDED_ON,
    ),
    *ALERT_DATA,
    PersonalDataTable(
        name="incident_assignments",
        about="Incidents assigned to the person",
        model=IncidentAssignee,
        of=by(IncidentAssignee.user_id),
        exported=("incident_id",),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="incidents",
        about="Incidents that the person opened",
        model=Incident,
        of=by(Incident.author_id),
        exported=("project_id", "iid", "title", "description", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="incident_timeline",
        about="The person's actions and comments on incidents",
        model=IncidentNote,
        of=by(IncidentNote.user_id),
        exported=("incident_id", "kind", "text", "details", "is_internal", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="deployments",
        about="Deployments that the person's tokens reported",
        model=Deployment,
        of=by(Deployment.user_id),
        exported=("project_id", "iid", "sha", "ref", "status", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="commit_statuses",
        about="Statuses of commits that the person's tokens reported",
        model=CommitStatus,
        of=by(CommitStatus.user_id),
        exported=("project_id", "sha", "name", "status", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="releases",
        about="Releases that the person's tokens created",
        model=ProjectRelease,
        of=by(ProjectRelease.user_id),
        exported=("project_id", "tag_name", "name", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="mails",
        about="E-mails to the person, for 90 days",
        model=Mail,
        of=lambda user: func.lower(Mail.recipient) == user.email.lower(),
        exported=("recipient", "subject", "text", "created_at", "sent_at"),
        # Only who reads the mail of the address may have the links.
        rewritten={"text": without_links},
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="email_confirmations",
        about="The e-mail address that waits to be confirmed, for 30 days at the most",
        model=EmailConfirmation,
        of=by(EmailConfirmation.user_id),
        exported=("email", "created_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="audit_events",
        about="The person's actions and changes to the account, with IP address and user agent",
        model=AuditEvent,
        of=lambda user: or_(AuditEvent.actor_id == user.id, AuditEvent.user_id == user.id),
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
        of=by(AuditStreamEntry.actor_id),
        exported=("created_at", "payload"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
)
