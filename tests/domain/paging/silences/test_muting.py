"""Alerts whose pages are held, with the reason and the end."""

from datetime import timedelta

import pytest
from sqlalchemy import event, update

from domain.alerts.matching.matcher_parser import parse_matchers
from domain.core.errors import ConflictError, InvalidError
from domain.paging.maintenance_windows.actions import create_window
from domain.paging.maintenance_windows.types import NewWindow
from domain.paging.silences.actions import create_silence, expire_silence, preview_silence
from domain.paging.silences.active_mutes import find_mutes
from domain.paging.silences.flapping import store_flap_settings
from domain.paging.silences.types import (
    FlapSettings,
    MuteKind,
    NewSilence,
    PreviewQuery,
    SilenceState,
)
from models import Alert
from tests.domain.paging.silences.conftest import Quiet
from tests.support.accounts.people import database_of, now
from tests.support.database.work import project_in, user_actor, work_in

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.mark.spec("J1")
def test_a_silence_holds_pages_of_matching_alerts_from_start_to_end(quiet: Quiet) -> None:
    web, other = quiet.fire("web", service="web"), quiet.fire("db", service="db")
    begin = now() + HOUR
    made = quiet.silence('service="web"', begin=begin, length=2 * HOUR)
    assert quiet.muted() == {}
    assert quiet.muted(begin - MINUTE) == {}
    found = quiet.muted(begin)
    assert other not in found
    mute = found[web]
    assert (mute.kind, mute.id, mute.until) == (MuteKind.SILENCE, made.id, begin + 2 * HOUR)
    assert (mute.name, mute.by) == ('service="web"', quiet.actor.name)
    assert quiet.muted(begin + 2 * HOUR) == {}


def test_an_ended_silence_holds_no_pages(quiet: Quiet) -> None:
    iid = quiet.fire(service="web")
    made = quiet.silence('service="web"')
    asked_again = quiet.muted()[iid].look_again_at
    assert asked_again <= now() + MINUTE
    with database_of(quiet.gatebell) as session:
        actor = user_actor(quiet.actor.id, quiet.actor.name)
        project = project_in(session, quiet.project_id)
        ended = expire_silence(work_in(session, actor=actor), project, made.id)
    assert ended.state is SilenceState.EXPIRED
    assert ended.ended_by == quiet.actor.name
    assert quiet.muted() == {}


def test_the_last_ending_silence_is_the_reason(quiet: Quiet) -> None:
    iid = quiet.fire(service="web")
    quiet.silence('service="web"', length=HOUR)
    longer = quiet.silence('alertname=~".+"', length=3 * HOUR)
    quiet.silence('service="web"', length=2 * HOUR)
    assert quiet.muted()[iid].id == longer.id


def test_a_window_holds_pages_of_alerts_that_meet_its_conditions(quiet: Quiet) -> None:
    high = quiet.fire("a", severity="high", environment="production")
    quiet.fire("b", severity="low")
    new = NewWindow(
        name="Upgrade",
        starts_at=(now() - HOUR).isoformat(),
        duration=4 * HOUR,
        severities=("high", "critical"),
    )
    with database_of(quiet.gatebell) as session:
        made = create_window(work_in(session), project_in(session, quiet.project_id), new)
    found = quiet.muted()
    assert set(found) == {high}
    assert (found[high].kind, found[high].name, found[high].id) == (
        MuteKind.MAINTENANCE,
        "Upgrade",
        made.id,
    )
    assert found[high].until == made.occurrences[0].ends_at
    assert quiet.muted(now() + 5 * HOUR) == {}


def test_the_reason_is_the_silence_or_window_that_ends_last(quiet: Quiet) -> None:
    iid = quiet.fire(service="web")
    begin = now().isoformat()
    quiet.silence('service="web"', length=2 * HOUR)
    for hours, kind in ((1, MuteKind.SILENCE), (3, MuteKind.MAINTENANCE)):
        new = NewWindow(name="Upgrade", starts_at=begin, duration=hours * HOUR)
        with database_of(quiet.gatebell) as session:
            create_window(work_in(session), project_in(session, quiet.project_id), new)
        assert quiet.muted()[iid].kind is kind


def flap(quiet: Quiet, times: int) -> int:
    for _ in range(times - 1):
        quiet.fire()
        quiet.resolve()
    return quiet.fire()


def test_a_flapping_alert_pages_the_same_users_rarely(quiet: Quiet) -> None:
    settings = FlapSettings(
        openings=2, within_minutes=30, hold_minutes=10, reopen_minutes=0, holds_critical=True
    )
    quiet.configure(settings)
    # Two openings are normal; with the third one, the alert is flapping.
    flap(quiet, 3)
    assert quiet.muted() == {}
    quiet.resolve()
    held = quiet.fire()
    mute = quiet.muted()[held]
    assert (mute.kind, mute.name) == (
        MuteKind.FLAPPING,
        (
            "opened 4 or more times within 30 minutes, so the same people are paged again at most "
            "every 10 minutes"
        ),
    )
    assert mute.until is not None
    assert timedelta() < mute.until - now() <= 10 * MINUTE
    assert quiet.muted(mute.until) == {}
    quiet.configure(settings.model_copy(update={"holds_critical": False}))
    assert quiet.muted() == {}  # It is critical.


def test_a_short_silence_takes_precedence_over_flapping(quiet: Quiet) -> None:
    settings = FlapSettings(
        openings=2, within_minutes=30, hold_minutes=60, reopen_minutes=0, holds_critical=True
    )
    quiet.configure(settings)
    held = flap(quiet, 4)
    assert quiet.muted()[held].kind is MuteKind.FLAPPING
    quiet.silence('alertname=~".+"', length=MINUTE)
    assert quiet.muted()[held].kind is MuteKind.SILENCE
    assert quiet.muted(now() + 2 * MINUTE)[held].kind is MuteKind.FLAPPING


def test_a_flapping_alert_that_continues_another_one_holds_all_pages(quiet: Quiet) -> None:
    settings = FlapSettings(
        openings=2, within_minutes=30, hold_minutes=60, reopen_minutes=5, holds_critical=True
    )
    quiet.configure(settings)
    iid = flap(quiet, 4)
    quiet.set_status(iid, "acknowledged")
    quiet.resolve()
    held = quiet.fire()
    assert quiet.muted()[held].kind is MuteKind.REOPENED
    quiet.silence('alertname=~".+"', length=MINUTE)
    assert quiet.muted()[held].kind is MuteKind.SILENCE


def test_old_openings_are_ignored(quiet: Quiet) -> None:
    settings = FlapSettings(
        openings=2, within_minutes=30, hold_minutes=10, reopen_minutes=0, holds_critical=True
    )
    quiet.configure(settings)
    last = flap(quiet, 4)
    assert set(quiet.muted()) == {last}
    with database_of(quiet.gatebell) as session:
        session.execute(
            update(Alert)
            .where(Alert.project_id == quiet.project_id, Alert.iid < last)
            .values(created_at=now() - 40 * MINUTE)
        )
    assert quiet.muted() == {}


def test_flap_detection_can_be_turned_off(quiet: Quiet) -> None:
    quiet.configure(FlapSettings(enabled=False, openings=1))
    flap(quiet, 4)
    assert quiet.muted() == {}


def wait_before_reopened_alerts_page(quiet: Quiet) -> None:
    with database_of(quiet.gatebell) as session:
        store_flap_settings(quiet.project_id, FlapSettings(reopen_minutes=5), session=session)


def test_an_alert_that_reopens_after_an_acknowledgement_holds_its_pages(quiet: Quiet) -> None:
    first = quiet.fire()
    quiet.set_status(first, "acknowledged")
    quiet.resolve()
    second = quiet.fire()
    assert quiet.muted() == {}  # Only if the project enables it.

    wait_before_reopened_alerts_page(quiet)
    mute = quiet.muted()[second]
    assert (mute.kind, mute.continues_iid, mute.by) == (
        MuteKind.REOPENED,
        first,
        quiet.actor.name,
    )
    assert mute.until is not None
    assert timedelta() < mute.until - now() <= 5 * MINUTE
    # The third alert still continues the first one.
    quiet.resolve()
    third = quiet.fire()
    assert quiet.muted()[third].continues_iid == first
    assert quiet.muted(now() + 5 * MINUTE) == {}


@pytest.mark.parametrize("status", ["resolved", ""])
def test_an_alert_after_a_closed_or_unacknowledged_one_pages(quiet: Quiet, status: str) -> None:
    wait_before_reopened_alerts_page(quiet)
    first = quiet.fire()
    if status:
        quiet.set_status(first, "acknowledged")
        quiet.set_status(first, status)
    else:
        quiet.resolve()
    second = quiet.fire()
    assert second != first
    assert quiet.muted() == {}


def test_many_alerts_need_few_queries(quiet: Quiet) -> None:
    quiet.endpoint.post_json([{"title": f"alert {n}", "service": "web"} for n in range(1_500)])
    quiet.silence('service="web", alertname!="alert 7"')
    labels = quiet.labels()
    statements: list[str] = []
    with database_of(quiet.gatebell) as session:
        connection = session.connection()
        event.listen(
            connection, "before_cursor_execute", lambda *given: statements.append(given[2])
        )
        found = find_mutes(labels, moment=now(), session=session)
    assert len(found) == 1_499
    # Rules, settings, and for each of two thousands: flapping, earlier alerts, and their answers.
    assert len(statements) <= 3 + 2 * 3


def test_a_preview_counts_open_alerts_and_alerts_of_a_week(quiet: Quiet) -> None:
    long_ago = (now() - timedelta(days=9)).isoformat()
    quiet.fire("old but open", service="web", start_time=long_ago)
    quiet.fire("new", service="web")
    quiet.fire("resolved", service="web")
    quiet.resolve("resolved")
    quiet.fire("other", service="db")
    with database_of(quiet.gatebell) as session:
        query = PreviewQuery(matchers=parse_matchers('alertname=~"old.*|new|resolved"'))
        found = preview_silence(work_in(session), project_in(session, quiet.project_id), query)
    assert (found.open_alerts, found.recent_alerts, found.looked_at) == (2, 2, 4)
    assert [alert.title for alert in found.alerts] == ["resolved", "new", "old but open"]
    assert found.is_complete


REFUSED = (
    ("", 0, 1, "matchers"),
    ('service!="web"', 0, 1, "matchers"),
    ('a=~".*"', 0, 1, "matchers"),
    ("a=b", 0, 0, "ends_at"),
    ("a=b", -3, 2, "ends_at"),
    ("a=b", 0, 24 * 366, "ends_at"),
    ("a=b", -25, 100, "starts_at"),
    ("a=b", 24 * 367, 1, "starts_at"),
)


def test_a_silence_of_all_alerts_or_without_an_end_is_rejected(quiet: Quiet) -> None:
    for matchers, start, length, field in REFUSED:
        begin = now() + start * HOUR
        new = NewSilence(
            matchers=parse_matchers(matchers), starts_at=begin, ends_at=begin + length * HOUR
        )
        with database_of(quiet.gatebell) as session, pytest.raises(InvalidError) as refused:
            create_silence(work_in(session), project_in(session, quiet.project_id), new)
        assert refused.value.field == field
        assert not isinstance(refused.value, ConflictError)
