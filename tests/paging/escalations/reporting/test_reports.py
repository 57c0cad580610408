"""Tests of reports: all numbers of random histories are recounted from the stored rows."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from random import Random
from statistics import median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import SEVERITIES
from domain.core.errors import InvalidError
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.schedules import get_schedule
from domain.reports import report_builder as reading
from domain.reports import report_queries
from domain.reports.comparison import compare_figures
from domain.reports.handoff_drafts import build_handoff_draft
from domain.reports.report_builder import build_on_call_report
from domain.reports.report_formats import format_report
from domain.reports.types import Report, ReportQuery
from models import (
    Alert,
    AlertNote,
    Contact,
    EscalationPage,
    Incident,
    IncidentNote,
    Page,
    PageBatch,
    PageMessage,
    PageRecipient,
    Project,
    User,
)
from tests.support.notifications.escalations import Escalated

pytestmark = pytest.mark.both_databases
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ZONES = ("Pacific/Auckland", "America/St_Johns", "Europe/Berlin")
ANSWERS = {"acknowledged", "resolved", "ignored"}


class History:
    """Stores days of random alerts, pages and answers in two projects."""

    def __init__(self, shop: Escalated, seed: int) -> None:
        self.shop, self.random = shop, Random(seed)  # noqa: S311 - no secret
        self.begin, self.first = shop.now, 1_000 * (seed + 1)
        self.projects = [shop.project_id, shop.project(f"acme/other-{seed}")]
        self.people = [shop.person(f"{name}-{seed}") for name in ("ada", "ben", "cy")]
        self.numbers = Counter[int]()
        with shop.session() as session:
            for person, place in zip(self.people, ZONES, strict=True):
                session.get_one(User, person.id).time_zone = place
            owner = ContactOwner(project_id=shop.project_id)
            channel = Contact(
                project_id=owner.project_id,
                type="email",
                label="Team",
                shown_address="t",
                lane="t",
                created_at=self.begin,
            )
            recipients = [PageRecipient(user_id=each.id) for each in self.people]
            session.add_all([channel, *recipients])
            session.flush()
            self.channel_id = channel.id
            self.recipients = {each.user_id: each.id for each in recipients}
            for _ in range(150):
                self._alert(session)
            for _ in range(40):
                self._incident(session)

    def _moment(self, after: datetime, most: timedelta) -> datetime:
        return after + timedelta(seconds=self.random.randrange(int(most.total_seconds())))

    def _alert(self, session: Any) -> None:
        random = self.random
        project = random.choice(self.projects)
        self.numbers[project] += 1
        started = self._moment(self.begin, 6 * DAY)
        status = random.choice(["triggered", "acknowledged", "resolved", "resolved", "ignored"])
        ended = self._moment(started, HOUR) if status == "resolved" else None
        alert = Alert(
            project_id=project,
            iid=self.numbers[project] + self.first,
            status=status,
            severity=random.randrange(6),
            title=random.choice(["Disk full", "Slow", "Down"]),
            fingerprint=random.choice([None, random.randbytes(32)]),
            started_at=started,
            created_at=started + random.choice([timedelta(), MINUTE, -MINUTE]),
            last_event_at=started,
            ended_at=ended,
            recovery_received_at=random.choice([None, ended]),
        )
        session.add(alert)
        session.flush()
        for at in sorted(self._moment(started, 2 * HOUR) for _ in range(random.randrange(4))):
            person = random.choice([*self.people, None])
            by_itself = person is None and random.random() < 0.5
            session.add(
                AlertNote(
                    alert_id=alert.id,
                    user_id=person.id if person else None,
                    user_name=person.username if person else "",
                    kind=random.choice(["status", "status", "note"]),
                    text=random.choice([*sorted(ANSWERS), "triggered"]),
                    via="by itself: silent" if by_itself else None,
                    created_at=at,
                )
            )
            session.flush()
        for number in range(random.randrange(6)):
            self._page(session, alert, number)

    def _page(self, session: Any, alert: Alert, number: int) -> None:
        random = self.random
        at = self._moment(alert.started_at - HOUR, 3 * HOUR)
        person = random.choice([*self.people, None])
        is_channel = person is None and random.random() < 0.5
        key = f"alert {alert.id}, {number}"
        if person is not None and person.contact and random.random() < 0.8:
            outcome = random.choice(["accepted", "accepted", "failed", None])
            batch = PageBatch(recipient_id=self.recipients[person.id], created_at=at)
            session.add(batch)
            session.flush()
            page = Page(
                key=key,
                recipient_id=self.recipients[person.id],
                alert_id=alert.id,
                kind="firing",
                created_at=at,
                due_at=at,
                batch_id=batch.id,
                outcome=outcome,
                outcome_at=self._moment(at, HOUR) if outcome else None,
            )
            message = PageMessage(
                contact_id=person.contact.id,
                kind="page",
                batch_id=batch.id,
                created_at=at,
                tries=number,
            )
            session.add_all([page, message])
        session.add(
            EscalationPage(
                alert_id=alert.id,
                user_id=person.id if person else None,
                channel_id=self.channel_id if is_channel else None,
                round=1,
                step=number + 1,
                paged_at=at,
                page_key=key,
            )
        )

    def _incident(self, session: Any) -> None:
        random = self.random
        project = random.choice(self.projects)
        self.numbers[project] += 1
        begun = self._moment(self.begin, 6 * DAY)
        status = random.choice(["triggered", "acknowledged", "resolved"])
        incident = Incident(
            project_id=project,
            iid=self.numbers[project] + self.first,
            title="Outage",
            description="",
            urgency=random.randrange(6),
            status=status,
            author_name="",
            created_at=begun,
            updated_at=begun,
            resolved_at=self._moment(begun, HOUR) if status == "resolved" else None,
        )
        session.add(incident)
        session.flush()
        for at in sorted(self._moment(begun, 2 * HOUR) for _ in range(random.randrange(4))):
            person = random.choice([*self.people, None])
            because = {"because": "its alerts are resolved"} if person is None else {}
            new = random.choice(["acknowledged", "resolved", "triggered"])
            session.add(
                IncidentNote(
                    incident_id=incident.id,
                    user_id=person.id if person else None,
                    user_name=person.username if person else "",
                    kind=random.choice(["status", "status", "note"]),
                    text="",
                    details={"old": "triggered", "new": new, **because},
                    created_at=at,
                    updated_at=at,
                )
            )
            session.flush()
        for number in range(random.randrange(4)):
            at, outcome = self._moment(begun, HOUR), random.choice(["accepted", "failed", None])
            key = random.choice(
                ["incident {}, {}", "asked: incident {}, {}", "page {}.{}, now critical"]
            )
            session.add(
                Page(
                    key=key.format(incident.id, number),
                    recipient_id=self.recipients[random.choice(self.people).id],
                    incident_id=incident.id,
                    kind=random.choice(["firing", "firing", "follow_up"]),
                    created_at=at,
                    due_at=at,
                    outcome=outcome,
                    outcome_at=self._moment(at, HOUR) if outcome else None,
                )
            )


def own_median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def own_90th(values: Sequence[float]) -> float | None:
    """Return the least value that at least nine of ten values do not exceed."""
    return next(
        (each for each in sorted(values) if sum(v <= each for v in values) * 10 >= 9 * len(values)),
        None,
    )


class PageRecord(NamedTuple):
    """Represents a page about an alert or incident."""

    at: datetime
    number: int
    user_id: int | None
    channel_id: int | None
    key: str | None
    about: tuple[str, int]


class Status(NamedTuple):
    word: str
    at: datetime
    by: str | None
    is_automatic: bool


def about(thing: Any) -> tuple[str, int]:
    return ("incident" if isinstance(thing, Incident) else "alert", thing.id)


class Recount:
    """Computes the same numbers from whole tables."""

    def __init__(self, shop: Escalated, within: Period, project_ids: Collection[int]) -> None:
        alerts = {row.id: row for row in shop.rows(Alert) if row.project_id in project_ids}
        self.paths = {row.id: row.path for row in shop.rows(Project)}
        self.users = {row.id: row for row in shop.rows(User)}
        self.sent = {row.key: row for row in shop.rows(Page)}
        incidents = {r.id: r for r in shop.rows(Incident) if r.project_id in project_ids}
        users = {row.id: row.user_id for row in shop.rows(PageRecipient)}
        pages = [
            PageRecord(r.paged_at, r.id, r.user_id, r.channel_id, r.page_key, ("alert", r.alert_id))
            for r in shop.rows(EscalationPage)
            if r.alert_id in alerts
        ]
        pages += [
            PageRecord(
                r.created_at, -r.id, users[r.recipient_id], None, r.key, ("incident", r.incident_id)
            )
            for r in shop.rows(Page)
            if r.incident_id in incidents and r.kind == "firing" and "now critical" not in r.key
        ]
        self.pages = sorted(row for row in pages if within.start <= row.at < within.end)
        self.all = {about(row): row for row in (*alerts.values(), *incidents.values())}
        self.alerts = [r for r in alerts.values() if within.start <= r.started_at < within.end]
        self.notes: dict[tuple[str, int], list[Status]] = defaultdict(list)
        for row in shop.rows(AlertNote):
            if row.kind == "status":
                found = Status(row.text, row.created_at, row.user_name or None, bool(row.via))
                self.notes["alert", row.alert_id].append(found)
        for row in shop.rows(IncidentNote):
            if row.kind == "status":
                new, is_automatic = row.details["new"], "because" in row.details
                found = Status(new, row.created_at, row.user_name or None, is_automatic)
                self.notes["incident", row.incident_id].append(found)

    def statuses(self, thing: Any) -> list[tuple[str, datetime, str | None]]:
        """Return the actions of users, each with its author."""
        return [each[:3] for each in self.notes[about(thing)] if not each.is_automatic]

    def acknowledged(self, alert: Alert) -> tuple[str, datetime, str | None] | None:
        found = [each for each in self.statuses(alert) if each[0] == "acknowledged"]
        return found[0] if found else None

    def came_to_an_end(self, thing: Any) -> datetime | None:
        """Return when something other than a user's action ended it."""
        is_incident = isinstance(thing, Incident)
        resolved = [each for each in self.notes[about(thing)] if each.word == "resolved"]
        ended_at: datetime | None = None if is_incident else thing.recovery_received_at
        if ended_at:
            return ended_at
        if resolved:
            return resolved[-1].at if resolved[-1].is_automatic else None
        ended_at = thing.resolved_at if is_incident else thing.ended_at
        return ended_at if thing.status == "resolved" else None

    def answer(self, page: PageRecord) -> tuple[str, str | None, int | None]:
        thing = self.all[page.about]
        first = [s for s in self.statuses(thing) if s[0] in ANSWERS and s[1] >= page.at][:1]
        end = self.came_to_an_end(thing)
        end = end if end is not None and end >= page.at else None
        if first and (end is None or end >= first[0][1]):
            what, at, by = first[0]
            return what, by, int((at - page.at).total_seconds())
        if end is not None:
            return "ended_by_itself", None, int((end - page.at).total_seconds())
        waits = thing.status in {"triggered", "acknowledged"}
        return "unanswered" if waits else "ended_by_itself", None, None

    def nights(self, user_id: int) -> set[date]:
        found = set()
        for row in self.pages:
            sent = self.sent.get(row.key or "")
            if row.user_id == user_id and sent is not None and sent.outcome == "accepted":
                local = sent.outcome_at.astimezone(ZoneInfo(self.users[user_id].time_zone))
                if not 7 <= local.hour < 22:
                    found.add((local.replace(tzinfo=None) - 12 * HOUR).date())
        return found

    def check(self, report: Report) -> None:
        totals, pages = report.totals, self.pages
        answers = [self.answer(page) for page in pages]
        assert [(p.answer.kind, p.answer.by, p.answer.seconds) for p in report.pages] == answers
        told = [(p.at, p.alert_iid, p.incident_iid) for p in report.pages]
        things = [(page, self.all[page.about].iid) for page in pages]
        assert told == [
            (page.at, *((iid, None) if page.about[0] == "alert" else (None, iid)))
            for page, iid in things
        ]
        firsts = {p.about: a[0] for p, a in zip(pages[::-1], answers[::-1], strict=True)}
        kinds = Counter(firsts.values())
        assert (totals.alerts, totals.pages) == (len(self.alerts), len(pages))
        assert totals.acknowledged == sum(self.acknowledged(a) is not None for a in self.alerts)
        assert totals.people == len({page.user_id for page in pages if page.user_id})
        paged = Counter(what for what, _ in firsts)
        assert (totals.paged_alerts, totals.paged_incidents) == (paged["alert"], paged["incident"])
        assert totals.answered == sum(kinds[word] for word in ANSWERS)
        assert totals.ended_by_themselves == kinds["ended_by_itself"]
        assert totals.unanswered == kinds["unanswered"]
        for times in report.times:
            self._check_times(times)
        assert {t.severity for t in report.times} - {None} == {
            SEVERITIES[a.severity].value for a in self.alerts
        }
        self._check_people(report)
        zone = ZoneInfo(report.time_zone)
        hours = Counter(p.at.astimezone(zone).hour for p in pages if p.channel_id is None)
        assert report.hours == [hours[hour] for hour in range(24)]
        self._check_rules(report)

    def _check_times(self, times: Any) -> None:
        word = times.severity
        alerts = [a for a in self.alerts if word in {None, SEVERITIES[a.severity].value}]
        acks = [(a, found[1]) for a in alerts if (found := self.acknowledged(a))]
        waited = [max((at - a.created_at).total_seconds(), 0) for a, at in acks]
        lasted = [
            (a.ended_at - a.started_at).total_seconds()
            for a in alerts
            if a.status == "resolved" and a.ended_at
        ]
        assert (times.alerts, times.acknowledged, times.resolved) == (
            len(alerts),
            len(waited),
            len(lasted),
        )
        assert times.acknowledge_median == own_median(waited)
        assert times.acknowledge_90th == own_90th(waited)
        assert times.resolve_median == own_median(lasted)
        assert times.resolve_90th == own_90th(lasted)

    def _check_people(self, report: Report) -> None:
        acks = Counter(found[2] for a in self.alerts if (found := self.acknowledged(a)))
        paged = Counter(self.users[p.user_id].username for p in self.pages if p.user_id)
        ids = {row.username: row.id for row in self.users.values()}
        expected = {
            name: (paged[name], acks[name], len(self.nights(ids[name])))
            for name in {*paged, *acks} - {None}
        }
        assert {p.user: (p.pages, p.acknowledged, p.nights) for p in report.people} == expected

    def _check_rules(self, report: Report) -> None:
        titles = Counter((alert.project_id, alert.title) for alert in self.alerts)
        expected = {}
        for rule, openings in titles.items():
            of_rule = [a for a in self.alerts if (a.project_id, a.title) == rule]
            alone = [
                alert
                for alert in of_rule
                if alert.status == "resolved"
                and alert.ended_at
                and alert.ended_at - alert.started_at <= 10 * MINUTE
                and not self.statuses(alert)
            ]
            alerts = [self.all[p.about] for p in self.pages if p.about[0] == "alert"]
            pages = sum((alert.project_id, alert.title) == rule for alert in alerts)
            touched = [alert for alert in of_rule if self.statuses(alert)]
            prints = {alert.fingerprint or alert.id for alert in of_rule}
            if openings >= 3:
                figures = pages, openings, len(prints), len(alone), len(touched)
                expected[self.paths[rule[0]], rule[1]] = figures
        found = {
            (r.project, r.title): (r.pages, r.openings, r.fingerprints, r.alone, r.answered)
            for r in report.noisy_rules
        }
        assert len(found) == min(len(expected), 10)
        assert found.items() <= expected.items()
        ranks = [figures[:2] for figures in found.values()]
        assert ranks == sorted((each[:2] for each in expected.values()), reverse=True)[:10]


@pytest.mark.long
def test_all_numbers_of_random_histories_are_exact(shop: Escalated) -> None:
    for seed, place in enumerate(ZONES):
        history = History(shop, seed)
        for days, start in ((7, 0), (2, 1), (1, 5)):
            begin = history.begin + start * DAY
            within = Period(begin, begin + days * DAY)
            with shop.session() as session:
                report = build_on_call_report(
                    shop.work(session), shop.project_view(session), within, place
                )
            Recount(shop, within, {shop.project_id}).check(report)
            assert report.totals.pages
        whole = Period(history.begin, history.begin + 7 * DAY)
        with shop.session() as session:
            of_group = build_on_call_report(
                shop.work(session), shop.group_view(session), whole, place
            )
        Recount(shop, whole, {row.id for row in shop.rows(Project)}).check(of_group)


@pytest.mark.long
def test_a_page_keeps_its_route_and_reason_after_the_alert_opens_again(
    shop: Escalated,
) -> None:
    night = shop.policy("0s user:alice", "5m user:bob", name="Night", is_default=False)
    shop.policy("0s user:bob", name="Usual")
    shop.route(night, "Critical", severities=["critical"])
    alert = shop.alert(severity=0)
    shop.pass_time()
    shop.pass_time(minutes=5)
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time(minutes=1)
    # The escalation starts again with another policy.
    shop.raise_severity(alert, 2)
    shop.act(alert, "triggered", by=shop.bob)
    shop.pass_time()
    within = Period(shop.now - HOUR, shop.now + MINUTE)
    with shop.session() as session:
        report = build_on_call_report(shop.work(session), shop.project_view(session), within, "UTC")
    told = [(p.user, p.escalation_policy, p.route, p.step, p.answer.kind) for p in report.pages]
    assert told == [
        ("alice", "Night", "Critical", 1, "acknowledged"),
        ("bob", "Night", "Critical", 2, "acknowledged"),
        ("bob", "Usual", None, 1, "unanswered"),
    ]
    first = report.pages[0]
    assert [(each.name, each.state) for each in first.contacts] == [("email", "sent")]
    assert first.accepted_at is not None
    with shop.session() as session:
        early = ReportQuery.model_validate({"from": shop.now - 91 * DAY})
        with pytest.raises(InvalidError, match="at most 90 days ago"):
            early.build_period(shop.now)
        session.execute(text("UPDATE escalation_pages SET project_id = NULL"))
        before = build_on_call_report(shop.work(session), shop.project_view(session), within, "UTC")
    assert before == report


def test_a_long_report_lists_the_last_pages_but_counts_and_exports_all(
    shop: Escalated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LISTED_PAGES", 3)
    monkeypatch.setattr(report_queries, "BATCH_SIZE", 2)
    history, number = History(shop, 0), shop.schedule("Primary", shop.alice)
    within = Period(history.begin, history.begin + 7 * DAY)
    pages = Recount(shop, within, {shop.project_id}).pages
    with shop.session() as session:
        work, project = shop.work(session), shop.project_view(session)
        report = build_on_call_report(work, project, within, "UTC")
        draft = build_handoff_draft(work, project, get_schedule(work, project, number), within)
    with Session(shop.engine) as session:
        told = [each.at for each in reading.read_all_pages(shop.work(session), project, within)]
    assert told == [page.at for page in pages]
    assert [each.at for each in report.pages] == told[-3:]
    assert (report.totals.pages, report.earlier_pages) == (len(told), len(told) - 3)
    assert f"pages: {len(told)}, not yet answered: {report.totals.unanswered}" in draft
    assert (
        "".join(format_report(report, compare_figures(report, None, {}))).count(
            f"{len(told) - 3} earlier pages are not listed"
        )
        == 1
    )
