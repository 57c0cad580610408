"""Inventory of the tables with personal data, and the export of a person's data.

The erasure and the documentation use the inventory as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    LargeBinary,
    RowMapping,
    Table,
    func,
    inspect,
    or_,
    select,
)
from sqlalchemy.orm import Session

import models
from domain.accounts.users import UserView
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.mail.outbox import redact_secret_links
from models.case_folding import fold_text


class ErasureRule(StrEnum):
    """The effect of an erasure on the rows of a table. The value describes the effect."""

    DELETED = "deleted"
    PSEUDONYM = "kept under a pseudonym"
    HANDED_ON = "transferred to another user, or deleted"


@dataclass(frozen=True)
class PersonalDataTable:
    """A table with personal data, with rules for the export and the erasure of its rows."""

    model: type[models.Base]
    #: Description of the table's content, for the documentation.
    about: str
    _: KW_ONLY
    #: Names of the exported columns, separated by spaces.
    exported: str
    #: Names of columns without further information about the person: internal fields, secrets, and
    #: IDs of other people.
    internal: str = ""
    #: Name in an export, if it differs from the name in the database.
    called: str = ""
    #: Function that returns the SQL condition for the rows of a person. None selects the rows that
    #: refer to the account.
    rows: Callable[[UserView], ColumnElement[bool]] | None = None
    #: Functions that remove secrets from an exported string, by column.
    rewritten: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    #: Names of the columns that contain the ciphertext of an exported column, by exported name.
    decrypted: Mapping[str, str] = field(default_factory=dict)
    on_erasure: ErasureRule = ErasureRule.DELETED

    @property
    def name(self) -> str:
        """The name of the table in an export."""
        return self.called or self.model.__tablename__

    def build_row_condition(self, user: UserView) -> ColumnElement[bool]:
        """Return an SQL condition that is true for the rows of a person."""
        if self.rows is not None:
            return self.rows(user)
        columns = self.model.__table__.c
        return or_(
            *(each == user.id for each in columns if each.references(models.User.__table__.c.id))
        )


def find_unlisted_columns(table: PersonalDataTable) -> tuple[str, ...]:
    """Return the names of columns that are neither exported nor internal.

    A complete inventory has no such columns.
    """
    listed = {*table.exported.split(), *table.internal.split()}
    return tuple(
        each.key
        for each in cast("Table", table.model.__table__).columns
        if each.key not in listed and not _is_always_internal(each)
    )


def _is_always_internal(column: Column[Any]) -> bool:
    """Return whether a column is a hash, a ciphertext, a derived copy, or the person's own ID."""
    is_secret = isinstance(column.type, LargeBinary) or column.key.endswith(
        ("_ciphertext", "_hash")
    )
    is_copy = column.computed is not None or column.key in _FOLDED_COLUMNS
    return is_secret or is_copy or column.key in {"id", "user_id"}


_FOLDED_COLUMNS = frozenset({"username_key", "email_key", "name_key", "path_key"})
#: Tables with personal data, in the order of export and erasure.
PERSONAL_DATA = (
    PersonalDataTable(
        models.User,
        "Username, email address, display name, time zone, and when the account was "
        "created and last used",
        called="account",
        rows=lambda user: models.User.id == user.id,
        exported="id username email name is_admin state time_zone created_at last_sign_in_at "
        "password_changed_at email_confirmed_at idle_noticed_at kind "
        "must_change_password page_size",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.SignIn,
        "Signed-in browsers, with IP address and user agent",
        exported="created_at expires_at address user_agent methods is_proof identity_id",
    ),
    PersonalDataTable(
        models.BackchannelSession,
        "Ended sign-ins, until all applications have been notified",
        exported="application_id due_at ended_at",
        internal="sign_in_id sid tries",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.TotpDevice,
        "When authenticator apps were set up",
        called="authenticator_apps",
        exported="created_at confirmed_at",
        internal="last_used_step",
    ),
    PersonalDataTable(
        models.Passkey,
        "Names of passkeys, and when they were used",
        exported="name created_at last_used_at sign_count transports",
    ),
    PersonalDataTable(
        models.Identity,
        "Accounts at identity providers: subject, name and email address there, last use",
        exported="subject name email created_at last_used_at checked_at provider_id "
        "gave_administrator",
    ),
    PersonalDataTable(
        models.RecoveryCode,
        "When recovery codes were created and used",
        exported="created_at used_at",
    ),
    PersonalDataTable(
        models.PersonalAccessToken,
        "Personal access tokens: names, scopes, last use and its IP address",
        exported="id name description scopes created_at expires_at revoked_at last_used_at "
        "last_used_address",
        internal="family_id keyed_at authorization_id key_thumbprint keeps_admin_mode",
    ),
    PersonalDataTable(
        models.AccessToken,
        "Tokens of applications: scopes, last use, IP addresses and user agents",
        exported="application_id scopes created_at expires_at revoked_at address user_agent "
        "last_used_at last_used_address is_exchanged",
        internal="authorization_id refreshed_at key_thumbprint keeps_admin_mode",
    ),
    PersonalDataTable(
        models.CallCount,
        "API operations that the person's tokens called on each day, how often, and the last "
        "IP address",
        called="api_calls",
        exported="day operation application_id personal_token_id count errors first_at "
        "last_at last_address",
        internal="shape_id",
    ),
    PersonalDataTable(
        models.ChangeNotice,
        "API changes that the person was notified of by email",
        exported="change_id told_at",
    ),
    PersonalDataTable(
        models.Authorization,
        "Applications that the person authorized, with scopes",
        exported="application_id scopes redirect_uri created_at revoked_at auth_time methods",
        internal="code_challenge nonce code_expires_at code_used_at key_thumbprint sid",
    ),
    PersonalDataTable(
        models.Consent,
        "Scopes that the person does not need to approve again",
        exported="application_id scopes created_at updated_at",
    ),
    PersonalDataTable(
        models.IdempotentRequest,
        "Requests with an Idempotency-Key and their responses, for a day",
        exported="claimed_at status",
    ),
    PersonalDataTable(
        models.DeviceAuthorization,
        "Devices that requested access, with IP address and user agent",
        called="devices",
        exported="application_id scopes created_at address user_agent approved_at denied_at "
        "expires_at redeemed_at auth_time",
        internal="interval last_polled_at",
    ),
    PersonalDataTable(
        models.Group,
        "The personal namespace",
        called="personal_namespace",
        exported="path description created_at name",
        internal="parent_id owner_id two_factor_required_at two_factor_grace_period deleted_at",
    ),
    PersonalDataTable(
        models.Member,
        "Roles in groups and projects",
        called="memberships",
        exported="group_id project_id role created_at expires_at member_role_id",
    ),
    PersonalDataTable(
        models.Invitation,
        "Invitations to the email address, or sent by the person",
        rows=lambda user: or_(
            models.Invitation.invited_by == user.id,
            models.Invitation.email_key == fold_text(user.email),
        ),
        exported="group_id project_id role created_at expires_at",
        internal="email invited_by authorization_id",
    ),
    PersonalDataTable(
        models.Application,
        "Applications that the person registered",
        exported="uid name redirect_uris scopes created_at last_used_at confidential "
        "require_pkce trusted is_instance_wide refresh_for_devices require_dpop "
        "omit_iss allowed_grants backchannel_logout_uri allowed_group_ids "
        "refresh_idle_days refresh_longest_days client_metadata jwks",
        internal="owner_id keyed_at",
        on_erasure=ErasureRule.HANDED_ON,
    ),
    PersonalDataTable(
        models.Contact,
        "Contacts at which the person is paged, including devices, and when messages were sent to "
        "them",
        exported="type label shown_address created_at confirmed_at last_sent_at last_failed_at "
        "last_error failing_since",
        internal="authorization_id project_id group_id lane code_expires_at code_tries next_try_at "
        "claim claimed_until tries",
    ),
    PersonalDataTable(
        models.ContactRule,
        "Notification rules: which contact is notified of which alerts, and when",
        exported="contact_id alerts delay_minutes only created_at",
    ),
    PersonalDataTable(
        models.PageRecipient,
        "Quiet hours, when the person was last paged, and the pages",
        called="paging",
        exported="time_zone quiet_from quiet_until critical_breaks_quiet wants_follow_ups "
        "last_page_at last_message_at last_page_severity",
        internal="contact_id due_at",
    ),
    PersonalDataTable(models.Assignment, "Alerts assigned to the person", exported="alert_id"),
    PersonalDataTable(
        models.AssignmentNotice,
        "Assignments that are listed in the next email to the person",
        exported="alert_id incident_id by_name created_at",
    ),
    PersonalDataTable(
        models.AlertNote,
        "The person's actions and comments on alerts",
        called="alert_activity",
        exported="alert_id kind text created_at user_name via changes",
        internal="delivery_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.AlertBatch,
        "Bulk changes of alerts, for two days",
        exported="id project_id status list_query changed state created_at filter matched left "
        "restored kept",
        internal="newest_alert_id cursor undone_to",
    ),
    PersonalDataTable(
        models.SavedAlertFilter,
        "Alert filters that the person saved",
        exported="project_id name query is_shared created_at",
    ),
    PersonalDataTable(
        models.OnCallTurn,
        "Positions in the rotations of on-call schedules, current and former",
        exported="rotation_id position",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.OnCallEligibility,
        "Periods in which the person was eligible for on-call schedules",
        exported="schedule_id since until",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.OnCallOverride,
        "On-call overrides for the person, of their shifts, or created by the person",
        exported="schedule_id starts_at ends_at created_at in_addition",
        internal="instead_of_id created_by",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.OnCallSwap,
        "Swaps of on-call shifts with the person, or arranged by the person",
        exported="schedule_id starts_at ends_at other_starts_at other_ends_at created_at",
        internal="other_user_id over_at created_by",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.OnCallSwapRequest,
        "Requests for swaps of on-call shifts from or to the person",
        exported="schedule_id starts_at ends_at other_starts_at other_ends_at state created_at "
        "answered_at",
        internal="other_user_id expires_at seconds other_seconds",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.OnCallHandoverNote,
        "Handoff notes that the person wrote",
        exported="schedule_id text created_at",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.OnCallFeed,
        "On-call calendars that the person subscribed to, of schedules or of their own shifts",
        exported="schedule_id created_at last_read_at",
        internal="keyed_at authorization_id",
    ),
    PersonalDataTable(
        models.OnCallAbsence,
        "Absences that the person entered, or that their calendars contain",
        exported="calendar_id starts_at ends_at is_floating note created_at",
    ),
    PersonalDataTable(
        models.OnCallImportedCalendar,
        "Calendars of absences that the person added",
        exported="name host time_zone event_count skipped_count created_at refreshed_at "
        "last_error next_refresh_at",
        internal="schedule_id etag last_modified failures",
    ),
    PersonalDataTable(
        models.OnCallConflictNotice,
        "Shifts of the person during absences about which notices were sent",
        exported="schedule_id starts_at ends_at noticed_at reminded_at",
    ),
    PersonalDataTable(
        models.Silence,
        "Silences that the person created or ended, for a year after their end",
        exported="project_id matchers comment starts_at ends_at created_at group_id",
        internal="created_by_id ended_by_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.MaintenanceWindow,
        "Maintenance windows that the person created",
        exported="project_id name local_start time_zone rule created_at group_id minutes "
        "conditions first_starts_at last_ends_at",
        internal="created_by_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.EscalationPage,
        "Alerts that the person was paged for, and when, for 90 days",
        exported="alert_id round step paged_at project_id outcome",
        internal="channel_id escalation_id page_key policy_id route_id asked_by_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.IncidentAssignee,
        "Incidents assigned to the person",
        called="incident_assignments",
        exported="incident_id",
    ),
    # Incidents that the rule opens later show that no one was paged because the account was
    # deleted.
    PersonalDataTable(
        models.IncidentRuleResponder,
        "Incident rules with the person as a responder",
        exported="rule_id",
        internal="schedule_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.Incident,
        "Incidents that the person opened",
        exported="project_id iid title description created_at urgency status author_name "
        "updated_at acknowledged_at resolved_at",
        internal="closes_when_resolved quiets_alerts rule_id author_id alerts",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.IncidentNote,
        "The person's actions and comments on incidents",
        called="incident_timeline",
        exported="incident_id kind text details is_internal created_at user_name updated_at",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.IncidentDocument,
        "Post-incident documents that the person changed last",
        exported="incident_id text created_at updated_at revision",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.Deployment,
        "Deployments that the person's tokens reported",
        exported="project_id iid sha ref status created_at environment_id is_tag updated_at "
        "finished_at",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.CommitStatus,
        "Statuses of commits that the person's tokens reported",
        exported="project_id sha name status created_at ref stage target_url description "
        "coverage allow_failure started_at finished_at",
        internal="pipeline_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.ProjectRelease,
        "Releases that the person's tokens created",
        called="releases",
        exported="project_id tag_name name created_at description ref released_at",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.Mail,
        "Emails to the person, for 90 days",
        rows=lambda user: func.lower(models.Mail.recipient) == user.email.lower(),
        exported="recipient subject text created_at sent_at",
        internal="key about text_ciphertext send_at next_try_at tries last_error",
        rewritten={"text": redact_secret_links},
        decrypted={"text": "text_ciphertext"},
    ),
    PersonalDataTable(
        models.EmailConfirmation,
        "An unconfirmed email address, for at most 30 days",
        exported="email created_at",
    ),
    PersonalDataTable(
        models.AuditEvent,
        "The person's actions and changes to the account, with IP address and user agent",
        exported="created_at kind actor_name subject details address user_agent request_id "
        "project_id group_id",
        internal="actor_id seal_id",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        models.AuditStreamEntry,
        "Clones of public projects, with IP address and user agent, until they have been "
        "sent to the audit streams",
        called="streamed_events",
        rows=lambda user: models.AuditStreamEntry.actor_id == user.id,
        exported="created_at payload",
        internal="stream_id event_id actor_id message_id tries set_aside_at",
        on_erasure=ErasureRule.PSEUDONYM,
    ),
)


def export_personal_data(
    user: UserView, *, session: Session, keyring: Keyring, now: datetime
) -> dict[str, object]:
    """Return all stored data about a person, except secrets, keyed by table name."""
    held = {each.name: _export_rows(each, user, session, keyring) for each in PERSONAL_DATA}
    account = held.pop("account")
    return {"exported_at": _format_value(now), "account": account[0], **held}


def _export_rows(
    table: PersonalDataTable, user: UserView, session: Session, keyring: Keyring
) -> list[dict[str, object]]:
    names = table.exported.split()
    columns = [getattr(table.model, name) for name in (*names, *table.decrypted.values())]
    statement = (
        select(*columns).where(table.build_row_condition(user)).order_by(*_get_primary_key(table))
    )

    def format_exported_value(row: RowMapping, name: str) -> object:
        value = row[name]
        ciphertext = row[table.decrypted[name]] if name in table.decrypted else None
        if ciphertext is not None:
            try:
                value = keyring.decrypt(ciphertext)
            except UndecryptableError:
                return None
        return _format_value(table.rewritten[name](value) if name in table.rewritten else value)

    return [
        {name: format_exported_value(row, name) for name in names}
        for row in session.execute(statement).mappings()
    ]


def _get_primary_key(table: PersonalDataTable) -> tuple[Any, ...]:
    return tuple(inspect(table.model).primary_key)


def _format_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
