"""Actions that change the paging of an alert, such as escalating, paging a user and snoozing."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Row, delete, insert, select

from domain.access.actions import action, read_action
from domain.access.actor import AccessMethod, UnitOfWork
from domain.alerts.change_feed import TRIGGERING_KINDS, ChangeKind, Follower, find_change_backlog
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.acknowledgements import RENEWED_PREFIX, SNOOZED_PREFIX
from domain.alerts.handling.activity import ActivityEntryKind, add_activity_entry
from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.handling.status import StatusChange, change_statuses_in_bulk
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.audit.events import EventKind
from domain.core.clock import DOUBLE_SUBMISSION_WINDOW, format_message_time
from domain.core.durations import format_duration
from domain.core.errors import ConflictError, InvalidError
from domain.paging.escalations.decision_inputs import store_progress
from domain.paging.escalations.missing_escalations import (
    assign_policies_after_snooze,
    choose_policies_for_alerts,
    create_stopped_escalations,
)
from domain.paging.escalations.policies import build_plan
from domain.paging.escalations.policy_steps import (
    EscalationProgress,
    advance_after_failure,
    format_mute_reason,
)
from domain.paging.escalations.reporting.explanation import explain_escalation
from domain.paging.escalations.snoozes import (
    ACKNOWLEDGED,
    end_waiting_state,
    get_tomorrow_morning,
    retrigger_alerts,
    stop_acknowledged_escalations,
)
from domain.paging.escalations.state import (
    ACTIVE_STATES,
    ESCALATION_TRANSITIONS,
    EscalationEvent,
    EscalationState,
    get_next_state,
)
from domain.paging.escalations.types import AlertPageBody, AlertPaging, AlertSnooze
from domain.paging.notifications.acknowledgement_links import (
    VIA_MESSAGE_LINK,
    AcknowledgementLink,
    LinkSelection,
    find_selected_subjects,
)
from domain.paging.notifications.batching import check_users_reachable
from domain.paging.notifications.page_queue import MANUAL_PAGE_PREFIX, NewPage, queue_pages
from domain.paging.notifications.page_subjects import SubjectKind
from domain.paging.silences.active_mutes import find_alert_mute
from domain.paging.silences.types import MuteKind
from domain.projects.views import ProjectView
from models import (
    Alert,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    PendingEscalation,
)

MIN_SNOOZE = timedelta(minutes=1)
MAX_SNOOZE = timedelta(days=7)
_CRITICAL_RANK = 0
_OPERATOR_VIA = "on the command line"
_ALERT_SUMMARY_QUERY = select(
    Alert.id, Alert.project_id, Alert.iid, Alert.title, Alert.status, Alert.severity
)
HandledAlert = Row[int, int, int, str, str, int]
_NO_POLICY_MESSAGE = "No escalation policy applies to this alert. Page a person instead."


@read_action("alerts.paging")
def show_paging(work: UnitOfWork, project: ProjectView, iid: int) -> AlertPaging:
    """Show the paging state of an alert."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    view = explain_escalation(
        project.id,
        alert_id,
        session=work.session,
        now=work.now,
        parser_settings=work.policy(ParserSettings),
    )
    return AlertPaging(
        state=view.state and view.state.value,
        sentence=view.sentence,
        waiting_seconds=None if view.waiting is None else int(view.waiting.total_seconds()),
        escalation_policy=view.policy,
        round=view.round,
        next_step=view.next_step,
        next_at=view.next_at,
        next_whom=view.next_whom or None,
        acknowledged_until=view.rests_until if view.state is EscalationState.ACKNOWLEDGED else None,
        snoozed_until=view.rests_until if view.state is EscalationState.SNOOZED else None,
        escalates_at=work.session.scalar(
            select(PendingEscalation.due_at).where(PendingEscalation.alert_id == alert_id)
        ),
    )


@action("alerts.escalate")
def escalate_alert(work: UnitOfWork, project: ProjectView, iid: int) -> AlertPaging:
    """Escalate an alert to the next step of its policy now.

    An acknowledged alert is triggered again. The step runs immediately, without the delay of five
    seconds in which users can undo an escalation on the web page. Raise NotFoundError if there is
    no such alert, or ConflictError if there is no step to take.
    """
    row, alert = lock_escalatable_alert(work, project, iid)
    work.session.execute(delete(PendingEscalation).where(PendingEscalation.alert_id == alert.id))
    state = EscalationState(row.state)
    if alert.status == ACKNOWLEDGED:
        # The worker might not yet have processed the change that stops the escalation.
        row.state = EscalationState.STOPPED.value if state in ACTIVE_STATES else row.state
        end_waiting_state(row, EscalationEvent.ESCALATE, now=work.now)
        _trigger_alert_for_user(work, alert, via="to escalate it")
    elif state in ACTIVE_STATES:
        _make_next_step_due(work, row)
    else:
        end_waiting_state(row, EscalationEvent.ESCALATE, now=work.now)
        # If the worker has not processed the triggered alert yet, the worker starts the escalation
        # later.
        backlog = find_change_backlog(Follower.ESCALATIONS, alert.id, session=work.session)
        row.next_at = None if backlog and backlog.kinds & TRIGGERING_KINDS else work.now
    _log_activity(work, alert, "escalated it: the next step runs now")
    _record_alert_event(work, project, alert, EventKind.ALERT_ESCALATED)
    work.session.flush()
    return show_paging(work, project, iid)


def lock_escalatable_alert(
    work: UnitOfWork, project: ProjectView, iid: int
) -> tuple[Escalation, HandledAlert]:
    """Lock the escalation of an alert, and return the escalation and the alert.

    Raise NotFoundError if there is no such alert. Raise ConflictError if no policy applies to the
    alert, or if paging is held back, for example by a silence.
    """
    row = _lock_or_create_escalation(work, project, iid)
    alert = _get_open_alert(work, project, iid)
    state, reading = EscalationState(row.state), work.policy(ParserSettings)
    if state not in ACTIVE_STATES:
        choices = choose_policies_for_alerts(
            [alert.id], session=work.session, parser_settings=reading
        )
        if (
            choices[alert.id].policy_id is None
            or EscalationEvent.ESCALATE not in ESCALATION_TRANSITIONS[state]
        ):
            raise ConflictError(_NO_POLICY_MESSAGE)
    mute = find_alert_mute(alert.id, moment=work.now, session=work.session, parser_settings=reading)
    # A flapping alert delays only repeated pages. A mute without an ID means that the worker has
    # not checked for an incident yet.
    if mute is not None and mute.kind is not MuteKind.FLAPPING and mute.id:
        message = (
            f"Paging is held back: {format_mute_reason(mute)}. Remove the cause, or page a person."
        )
        raise ConflictError(message)
    return row, alert


def _make_next_step_due(work: UnitOfWork, row: Escalation) -> None:
    """Make the next step due now.

    After the last step of a round, the next step is step 1 of another round.
    """
    row.state = get_next_state(EscalationState(row.state), EscalationEvent.ESCALATE).value
    row.held_since = row.held_by = row.held_until = None
    row.next_at = row.decided_at = work.now
    policy = work.session.get(EscalationPolicy, row.policy_id)
    if policy is None:
        return  # The worker chooses another policy when it takes the step.
    plan = build_plan(policy)
    if row.step >= len(plan.steps):
        store_progress(row, EscalationProgress(row.round + 1, 0, work.now))
        row.has_reached, row.judge_at = False, None
    progress = EscalationProgress(row.round, row.step, row.round_began_at)
    store_progress(row, advance_after_failure(plan, progress, now=work.now))


@action("alerts.page")
def page_user(work: UnitOfWork, project: ProjectView, iid: int, body: AlertPageBody) -> AlertPaging:
    """Page a member of the project about an alert now.

    The page does not depend on the escalation policy. Raise NotFoundError if there is no such
    alert, or ConflictError if it is closed. Raise InvalidError if a page would not reach the user
    now.
    """
    alert = _get_open_alert(work, project, iid)
    is_critical = alert.severity == _CRITICAL_RANK
    found = check_users_reachable([body.user], project, work, field="user", is_critical=is_critical)
    ((user_id, name),) = found.items()
    if _is_duplicate_submission(work, alert.id, user_id):
        return show_paging(work, project, iid)
    key = f"{MANUAL_PAGE_PREFIX}alert {alert.id}, user {user_id}, {work.now.isoformat()}"
    page = NewPage(
        key=key,
        project_id=project.id,
        alert_id=alert.id,
        user_id=user_id,
        is_critical=is_critical,
    )
    queue_pages([page], session=work.session, now=work.now)
    shown = {
        "alert_id": alert.id,
        "user_id": user_id,
        "round": 1,
        "step": 0,
        "page_key": key,
        "paged_at": work.now,
        "asked_by_id": work.actor.id or 0,
    }
    work.session.execute(insert(EscalationPage), [shown])
    _log_activity(work, alert, f"paged @{name}")
    _record_alert_event(work, project, alert, EventKind.ALERT_PERSON_PAGED, person=name)
    return show_paging(work, project, iid)


def _is_duplicate_submission(work: UnitOfWork, alert_id: int, user_id: int) -> bool:
    """Return whether the actor has just submitted the same form to page the user."""
    if work.actor.means is not AccessMethod.PAGE:
        return False
    same = select(EscalationPage.id).where(
        *(EscalationPage.alert_id == alert_id, EscalationPage.user_id == user_id),
        EscalationPage.asked_by_id == work.actor.id,
        EscalationPage.paged_at > work.now - DOUBLE_SUBMISSION_WINDOW,
    )
    return work.session.scalar(same.limit(1)) is not None


@action("alerts.snooze")
def snooze_alert(
    work: UnitOfWork, project: ProjectView, iid: int, body: AlertSnooze
) -> AlertPaging:
    """Snooze an open alert.

    The alert does not page anyone until the snooze ends. It is then triggered again. Raise
    NotFoundError if there is no such alert, ConflictError if it is closed, or InvalidError if the
    end is invalid.
    """
    until = _find_snooze_end(work, body)
    alert = _get_open_alert(work, project, iid)
    _snooze_alerts(work, project, [alert.id], until)
    _get_open_alert(work, project, iid)  # Fails if the alert was closed in the meantime.
    return show_paging(work, project, iid)


def snooze_alerts_by_link(
    work: UnitOfWork, link: AcknowledgementLink, selection: LinkSelection, length: timedelta
) -> int:
    """Snooze the selected alerts of a message, and return the number of alerts.

    Raise ForbiddenError or InvalidError in the same cases as `find_selected_subjects`.
    """
    found = find_selected_subjects(work, link, selection)
    own = work.with_actor(found.user.id or 0, found.user.name)
    alerts = found.get_ids_by_project(SubjectKind.ALERT)
    for project_id, alert_ids in alerts.items():
        project = found.projects[project_id]
        _snooze_alerts(own, project, alert_ids, work.now + length, via=VIA_MESSAGE_LINK)
    return sum(map(len, alerts.values()))


def _snooze_alerts(
    work: UnitOfWork,
    project: ProjectView,
    alert_ids: Sequence[int],
    until: datetime,
    *,
    via: str | None = None,
) -> None:
    for row in _lock_or_create_escalations(work, alert_ids):
        row.state = get_next_state(EscalationState(row.state), EscalationEvent.SNOOZE).value
        row.next_at, row.decided_at, row.ended_at = until, work.now, None
    work.session.flush()  # Escalations are written before alerts are locked.
    change = StatusChange(status=ACKNOWLEDGED, by=work.actor.source.actor, via=via)
    ids = select(Alert.id).where(Alert.id.in_(alert_ids))
    change_statuses_in_bulk(
        project.id, ids, change, among=("triggered",), session=work.session, now=work.now
    )
    alerts = work.session.execute(
        _ALERT_SUMMARY_QUERY.where(Alert.id.in_(alert_ids)).order_by(Alert.id)
    )
    for alert in alerts.all():
        _log_activity(work, alert, f"{SNOOZED_PREFIX} {format_message_time(until)}", via=via)
        _record_alert_event(work, project, alert, EventKind.ALERT_SNOOZED, until=until.isoformat())
    work.session.flush()


def _lock_or_create_escalations(work: UnitOfWork, alert_ids: Sequence[int]) -> list[Escalation]:
    """Lock the escalations of alerts, and create missing escalations.

    Escalations are missing if the worker has not processed the alerts yet.
    """
    is_one = Escalation.alert_id.in_(alert_ids)
    found = work.session.scalars(select(Escalation.alert_id).where(is_one))
    missing = set(alert_ids).difference(found)
    if missing:
        reading = work.policy(ParserSettings)
        create_stopped_escalations(
            missing, session=work.session, now=work.now, parser_settings=reading
        )
    mine = select(Escalation).where(is_one).order_by(Escalation.id)
    return list(work.session.scalars(mine.with_for_update()))


def _find_snooze_end(work: UnitOfWork, body: AlertSnooze) -> datetime:
    given = [each for each in (body.duration, body.until, body.tomorrow) if each]
    if len(given) != 1:
        message = "Exactly one of `duration`, `until` and `tomorrow` is required."
        raise InvalidError(message, field="duration")
    if body.tomorrow:
        return get_tomorrow_morning(work)
    until = body.until or work.now + (body.duration or timedelta())
    if not MIN_SNOOZE <= until - work.now <= MAX_SNOOZE:
        longest = format_duration(MAX_SNOOZE)
        message = f"A snooze must end between 1m and {longest} from now."
        raise InvalidError(message, field="until" if body.until else "duration")
    return until


@action("alerts.wake")
def end_snooze(work: UnitOfWork, project: ProjectView, iid: int) -> AlertPaging:
    """End the snooze of an alert and start its policy at step 1.

    The alert is triggered again. Raise NotFoundError if there is no such alert, or ConflictError if
    it is not snoozed.
    """
    row = _lock_escalation(work, project, iid)
    alert = _get_open_alert(work, project, iid)
    if row is None or row.state != EscalationState.SNOOZED.value:
        raise ConflictError("This alert is not snoozed.")
    end_waiting_state(row, EscalationEvent.SNOOZE_ENDED, now=work.now)
    _trigger_alert_for_user(work, alert, via="before its snooze ended")
    _record_alert_event(work, project, alert, EventKind.ALERT_WOKEN)
    return show_paging(work, project, iid)


@action("alerts.renew")
def renew_acknowledgement(work: UnitOfWork, project: ProjectView, iid: int) -> AlertPaging:
    """Extend the acknowledgement of an alert.

    The full timeout starts again. Raise NotFoundError if there is no such alert, or ConflictError
    if it has no acknowledgement that expires.
    """
    row = _lock_or_create_escalation(work, project, iid)
    alert = _get_open_alert(work, project, iid)
    backlog = find_change_backlog(Follower.ESCALATIONS, alert.id, session=work.session)
    if backlog and ChangeKind.ACKNOWLEDGED in backlog.kinds:
        # The worker does the same later, without any further effect.
        stop_acknowledged_escalations([alert.id], session=work.session, now=work.now)
    policy = work.session.get(EscalationPolicy, row.policy_id) if row.policy_id else None
    timeout = build_plan(policy).timeout if policy else None
    if row.state != EscalationState.ACKNOWLEDGED.value or timeout is None:
        raise ConflictError("This alert has no acknowledgement that expires.")
    row.state = get_next_state(EscalationState(row.state), EscalationEvent.RENEWED).value
    row.next_at, row.decided_at = work.now + timeout, work.now
    row.answered_by_id = work.actor.id
    _log_activity(work, alert, f"{RENEWED_PREFIX} {format_message_time(row.next_at)}")
    _record_alert_event(
        work,
        project,
        alert,
        EventKind.ALERT_ACKNOWLEDGEMENT_RENEWED,
        until=row.next_at.isoformat(),
    )
    work.session.flush()
    return show_paging(work, project, iid)


def _get_open_alert(work: UnitOfWork, project: ProjectView, iid: int) -> HandledAlert:
    """Return an open alert.

    Raise NotFoundError if there is no such alert, or ConflictError if it is closed.
    """
    alert_id = get_alert_id(project.id, iid, session=work.session)
    alert = work.session.execute(_ALERT_SUMMARY_QUERY.where(Alert.id == alert_id)).one()
    if alert.status not in OPEN_STATUSES:
        raise ConflictError(f"The alert is {alert.status}. Reopen it first.")
    return alert


def _lock_escalation(work: UnitOfWork, project: ProjectView, iid: int) -> Escalation | None:
    """Lock and return the escalation of an alert, or return None if the alert has no escalation.

    The escalation is locked before the alert, in the same order as in the worker.
    """
    alert_id = get_alert_id(project.id, iid, session=work.session)
    own = select(Escalation).where(Escalation.alert_id == alert_id)
    return work.session.scalar(own.with_for_update())


def _lock_or_create_escalation(work: UnitOfWork, project: ProjectView, iid: int) -> Escalation:
    """Lock the escalation of an alert.

    If the worker has not created the escalation yet, create it.
    """
    alert_id = get_alert_id(project.id, iid, session=work.session)
    (row,) = _lock_or_create_escalations(work, [alert_id])
    assign_policies_after_snooze(
        [row], session=work.session, parser_settings=work.policy(ParserSettings)
    )
    return row


def _trigger_alert_for_user(work: UnitOfWork, alert: HandledAlert, *, via: str) -> None:
    retrigger_alerts(
        alert.project_id,
        [alert.id],
        actor=work.actor.source.actor,
        via=via,
        session=work.session,
        now=work.now,
    )


def _log_activity(
    work: UnitOfWork, alert: HandledAlert, text: str, *, via: str | None = None
) -> None:
    """Add an entry about a user's action to the activity of an alert."""
    who = work.actor.source.actor
    entry = add_activity_entry(
        alert.id, ActivityEntryKind.HANDLING, text, by=who, session=work.session, now=work.now
    )
    entry.via = via or (None if who else _OPERATOR_VIA)


def _record_alert_event(
    work: UnitOfWork, project: ProjectView, alert: HandledAlert, kind: EventKind, **details: object
) -> None:
    about = {"project": project.path, "iid": alert.iid, **details}
    work.record_audit_event(kind, subject=alert.title, details=about)
