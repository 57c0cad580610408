"""Tables with personal data about alerts: who is told of them, who is on call, who did what."""

from sqlalchemy import or_

from domain.personal_data.tables import ErasureRule, PersonalDataTable, by
from models import (
    AlertNote,
    Assignment,
    Contact,
    EscalationPage,
    MaintenanceWindow,
    OnCallFeed,
    OnCallOverride,
    OnCallSwap,
    OnCallTurn,
    PageRecipient,
    Silence,
)

ALERT_DATA = (
    PersonalDataTable(
        name="contacts",
        about="Where the person is told of alerts: addresses, and when something was sent there",
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
        about="Quiet hours, and when the person was last told of an alert; pages go with it",
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
        ),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="assignments",
        about="Alerts that the person looks after",
        model=Assignment,
        of=by(Assignment.user_id),
        exported=("alert_id",),
        on_erasure=ErasureRule.DELETED,
    ),
    PersonalDataTable(
        name="alert_activity",
        about="What the person did with alerts, and wrote about them",
        model=AlertNote,
        of=by(AlertNote.user_id),
        exported=("alert_id", "kind", "text", "created_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
    PersonalDataTable(
        name="on_call_turns",
        about="Places in the rotations of on-call schedules, present and former",
        model=OnCallTurn,
        of=by(OnCallTurn.user_id),
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
        about="For which alerts the person was paged, and when, for 90 days",
        model=EscalationPage,
        of=by(EscalationPage.user_id),
        exported=("alert_id", "round", "step", "paged_at"),
        on_erasure=ErasureRule.PSEUDONYM,
    ),
)
