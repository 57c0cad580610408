"""The inventory of tables with personal data; export, erasure and documentation use it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, SQLColumnExpression, func, or_

from domain.accounts.users import UserView
from models import (
    AccessToken,
    AlertNote,
    Application,
    Assignment,
    AuditEvent,
    AuditStreamEntry,
    Authorization,
    Base,
    CallCount,
    ChangeNotice,
    CommitStatus,
    Consent,
    Deployment,
    DeviceAuthorization,
    IdempotentRequest,
    Invitation,
    Mail,
    Member,
    OnCallFeed,
    OnCallOverride,
    OnCallSwap,
    OnCallTurn,
    Passkey,
    PersonalAccessToken,
    ProjectRelease,
    RecoveryCode,
    SignIn,
    TotpDevice,
    User,
)
from models.folding import fold


class ErasureRule(StrEnum):
    """The effect of an erasure on rows; the value describes it."""

    DELETED = "deleted"
    PSEUDONYM = "kept under a pseudonym"
    HANDED_ON = "handed on to somebody else, or deleted"


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
    on_erasure: ErasureRule


def _by(column: SQLColumnExpression[int | None]) -> Callable[[UserView], ColumnElement[bool]]:
    def is_theirs(user: UserView) -> ColumnElement[bool]:
        condition: ColumnElement[bool] = column == user.id
        return condition

    return is_theirs


#: In the order of export and erasure.
PERSONAL_DATA = (
    PersonalDataTable(
        name="account",
        about="User name, e-mail address, display name, when the account was made and last used",
        model=User,
        of=_by(User.id),
        exported=(
            "id",
            "username",
            "email",
            "name",
            "is_admin",
            "state",
            "created_at",
            "last_sign_in_at",
            "password_changed_at",
        ),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="sign_ins",
        about="Browsers that are signed in, with address and user agent",
        model=SignIn,
        of=_by(SignIn.user_id),
        exported=("created_at", "expires_at", "address", "user_agent", "methods"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="authenticator_apps",
        about="When an authenticator app was set up",
        model=TotpDevice,
        of=_by(TotpDevice.user_id),
        exported=("created_at", "confirmed_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="passkeys",
        about="Passkeys: their names and when they were used",
        model=Passkey,
        of=_by(Passkey.user_id),
        exported=("name", "created_at", "last_used_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="recovery_codes",
        about="When recovery codes were made and used",
        model=RecoveryCode,
        of=_by(RecoveryCode.user_id),
        exported=("created_at", "used_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="personal_access_tokens",
        about="Personal access tokens: names, scopes, last use and its address",
        model=PersonalAccessToken,
        of=_by(PersonalAccessToken.user_id),
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
        about="Tokens of applications: scopes, last use, addresses and user agents",
        model=AccessToken,
        of=_by(AccessToken.user_id),
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
        about="Which operations of the API the person's tokens called on which day, how often, and "
        "the last IP address",
        model=CallCount,
        of=_by(CallCount.user_id),
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
        about="Of which changes of the API the person was told by e-mail",
        model=ChangeNotice,
        of=_by(ChangeNotice.user_id),
        exported=("change_id", "told_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="authorizations",
        about="What was granted to which application",
        model=Authorization,
        of=_by(Authorization.user_id),
        exported=("application_id", "scopes", "redirect_uri", "created_at", "revoked_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="consents",
        about="Scopes that are remembered as approved",
        model=Consent,
        of=_by(Consent.user_id),
        exported=("application_id", "scopes", "created_at", "updated_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="idempotent_requests",
        about="Requests with an Idempotency-Key and their responses, for a day",
        model=IdempotentRequest,
        of=_by(IdempotentRequest.user_id),
        exported=("claimed_at", "status"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="devices",
        about="Devices that asked for access, with address and user agent",
        model=DeviceAuthorization,
        of=_by(DeviceAuthorization.user_id),
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
        of=_by(Member.user_id),
        exported=("group_id", "project_id", "role", "created_at", "expires_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="invitations",
        about="Roles that were offered to the e-mail address, or by the person",
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
        of=_by(Application.owner_id),
        exported=("uid", "name", "redirect_uris", "scopes", "created_at", "last_used_at"),
        on_erasure=ErasureRule.HANDED_ON,
    ),
    PersonalDataTable(
        name="assignments",
        about="Alerts that the person looks after",
        model=Assignment,
        of=_by(Assignment.user_id),
        exported=("alert_id",),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="alert_activity",
        about="What the person did with alerts, and wrote about them",
        model=AlertNote,
        of=_by(AlertNote.user_id),
        exported=("alert_id", "kind", "text", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_turns",
        about="Places in the rotations of on-call schedules, present and former",
        model=OnCallTurn,
        of=_by(OnCallTurn.user_id),
        exported=("rotation_id", "position"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_overrides",
        about="Times for which the person was on call instead of others, or put somebody on call",
        model=OnCallOverride,
        of=lambda user: or_(
            OnCallOverride.user_id == user.id, OnCallOverride.created_by == user.id
        ),
        exported=("schedule_id", "starts_at", "ends_at", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_swaps",
        about="On-call shifts that the person exchanged with somebody, or between others",
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
        of=_by(OnCallFeed.user_id),
        exported=("schedule_id", "created_at", "last_read_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="deployments",
        about="Deployments that the person's tokens reported",
        model=Deployment,
        of=_by(Deployment.user_id),
        exported=("project_id", "iid", "sha", "ref", "status", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="commit_statuses",
        about="Statuses of commits that the person's tokens reported",
        model=CommitStatus,
        of=_by(CommitStatus.user_id),
        exported=("project_id", "sha", "name", "status", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="releases",
        about="Releases that the person's tokens made",
        model=ProjectRelease,
        of=_by(ProjectRelease.user_id),
        exported=("project_id", "tag_name", "name", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="mails",
        about="E-mails to the person, for 90 days",
        model=Mail,
        of=lambda user: func.lower(Mail.recipient) == user.email.lower(),
        exported=("recipient", "subject", "text", "created_at", "sent_at"),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="audit_events",
        about="What the person did, and what was done to the account, with address and user agent",
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
        about="Clones of public projects, with address and user agent, until they were sent to the "
        "destinations of the audit log",
        model=AuditStreamEntry,
        of=_by(AuditStreamEntry.actor_id),
        exported=("created_at", "payload"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
)
