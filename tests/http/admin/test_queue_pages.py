"""Tests of `/admin/queues`, the page of all delivery queues, of its metrics and its commands.

No worker runs, so the tests store queued rows and read them back.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import NewEmail, queue_emails
from domain.delivery.outgoing.destinations import build_url_columns
from domain.housekeeping.queues import QUEUES
from models import (
    Alert,
    AlertChange,
    AssignmentNotice,
    AuditEvent,
    AuditStream,
    AuditStreamEntry,
    BackchannelSession,
    Contact,
    Mail,
    PageMessage,
    Project,
    RegistryRemoval,
    RegistryRepository,
    SignIn,
    User,
    WebhookDelivery,
    WebhookEndpoint,
)
from tests.support.accounts.administration import (
    get_administrator_browser,
    get_shared_administrator,
)
from tests.support.accounts.people import (
    alice,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    settings_of,
    signed_in,
    unique,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, forms_in, submit

pytestmark = pytest.mark.both_databases

_HOUR = timedelta(hours=1)
_SECRET = "Zq8sVt3Xk1LmNp7RwYbC"
_ADDRESS = "ops.person"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def gatebell(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service without a worker, so that queued rows stay queued."""
    with running(new_service(request.param, only="app")) as service:
        yield service


@dataclass(frozen=True)
class Place:
    """The service, and the objects to which queued rows refer."""

    gatebell: LiveGatebell
    session: Session
    keyring: Keyring
    project_id: int
    user_id: int
    at: datetime
    application_id: int
    #: True if the last attempt for the stored row failed.
    has_failed: bool


#: Function that stores one waiting row, and returns the ID of its destination.
_Fill = Callable[[Place], str]


def _fill_pages(place: Place) -> str:
    contact = Contact(
        user_id=place.user_id,
        type="email",
        label="Pager",
        address_ciphertext=place.keyring.encrypt(f"{_ADDRESS}@pager.example"),
        shown_address=f"{_ADDRESS}@pager.example",
        lane="mail",
        created_at=place.at,
        confirmed_at=place.at,
        next_try_at=place.at + _HOUR * 9,
        tries=int(place.has_failed),
        failing_since=place.at if place.has_failed else None,
    )
    place.session.add(contact)
    place.session.flush()
    message = PageMessage(
        contact_id=contact.id,
        kind="notice",
        created_at=place.at,
        tries=int(place.has_failed),
        key="k",
        subject="s",
        text="t",
    )
    place.session.add(message)
    return str(contact.id)


def _fill_email(place: Place) -> str:
    text = "Open http://gate.example/users/password/aaaaaaaaaabbbbbbbbbbcccccccccc now."
    email = NewEmail(
        key=unique("key"), recipient=f"{_ADDRESS}@Mail.example", subject="Hi", text=text
    )
    queue_emails([email], session=place.session, keyring=place.keyring, now=place.at)
    if place.has_failed:
        values = {"tries": 2, "last_error": "recipient rejected (450)", "send_at": now() + _HOUR}
        place.session.execute(update(Mail).where(Mail.key == email.key).values(values))
    return "mail.example"


def _destination_columns(place: Place) -> Mapping[str, Any]:
    return {
        **build_url_columns(f"https://hook.example/{_SECRET}", place.keyring),
        "secret_ciphertext": place.keyring.encrypt("whsec_x"),
        "created_at": place.at,
        "tries": int(place.has_failed),
        "failing_since": place.at if place.has_failed else None,
        "last_error": "status 503" if place.has_failed else None,
        "next_try_at": now() + _HOUR if place.has_failed else None,
    }


def _fill_webhooks(place: Place) -> str:
    columns = _destination_columns(place)
    endpoint = WebhookEndpoint(project_id=place.project_id, events=["*"], conditions={}, **columns)
    place.session.add(endpoint)
    place.session.flush()
    delivery = WebhookDelivery(
        endpoint_id=endpoint.id,
        project_id=place.project_id,
        message_id=unique("msg"),
        event="alert.opened",
        body="{}",
        state="waiting",
        created_at=place.at,
        queued_at=place.at,
        next_try_at=now() + _HOUR if place.has_failed else place.at,
        tries=int(place.has_failed),
    )
    place.session.add(delivery)
    return str(endpoint.id)


def _fill_audit_streams(place: Place) -> str:
    stream = AuditStream(**_destination_columns(place))
    place.session.add(stream)
    place.session.flush()
    entry = AuditStreamEntry(
        stream_id=stream.id, payload={}, message_id=unique("m"), created_at=place.at
    )
    place.session.add(entry)
    return str(stream.id)


def _fill_changes(follower: str) -> _Fill:
    def fill(place: Place) -> str:
        change = AlertChange(
            follower=follower,
            project_id=place.project_id,
            alert_id=1,
            kind="opened",
            severity=1,
            created_at=place.at,
            tries=int(place.has_failed),
            next_try_at=now() + _HOUR if place.has_failed else None,
            last_error="ZeroDivisionError" if place.has_failed else None,
        )
        place.session.add(change)
        return str(place.project_id)

    return fill


def _fill_registry_removals(place: Place) -> str:
    repository = RegistryRepository(
        project_id=place.project_id,
        name=unique("acme/image"),
        created_at=place.at,
        pushed_at=place.at,
    )
    place.session.add(repository)
    place.session.flush()
    removal = RegistryRemoval(
        repository_id=repository.id,
        requested_at=place.at,
        due_at=now() + _HOUR if place.has_failed else place.at,
        failures=int(place.has_failed),
        failure="connection refused" if place.has_failed else None,
    )
    place.session.add(removal)
    place.session.flush()
    return str(removal.id)


def _fill_logout_notifications(place: Place) -> str:
    ended = BackchannelSession(
        application_id=place.application_id,
        user_id=place.user_id,
        sid=unique("sid"),
        due_at=now() + _HOUR if place.has_failed else place.at,
        ended_at=place.at,
        tries=3 * place.has_failed,
    )
    place.session.add(ended)
    return str(place.application_id)


def _fill_assignment_notices(place: Place) -> str:
    alert = place.session.scalars(select(Alert.id).limit(1)).first()
    place.session.add(
        AssignmentNotice(user_id=place.user_id, alert_id=alert, by_name="bob", created_at=place.at)
    )
    return ""


FILLS: Mapping[str, _Fill] = {
    "pages": _fill_pages,
    "email": _fill_email,
    "webhooks": _fill_webhooks,
    "audit_streams": _fill_audit_streams,
    "alert_changes_escalations": _fill_changes("escalations"),
    "alert_changes_incidents": _fill_changes("incidents"),
    "alert_changes_webhooks": _fill_changes("webhooks"),
    "registry_removals": _fill_registry_removals,
    "logout_notifications": _fill_logout_notifications,
    "assignment_notices": _fill_assignment_notices,
}
#: Columns with the time of the next attempt, which a retry changes.
DUE: Mapping[str, Any] = {
    "pages": Contact.next_try_at,
    "email": Mail.send_at,
    "webhooks": WebhookDelivery.next_try_at,
    "audit_streams": AuditStream.next_try_at,
    **dict.fromkeys([name for name in FILLS if "changes" in name], AlertChange.next_try_at),
    "registry_removals": RegistryRemoval.due_at,
    "logout_notifications": BackchannelSession.due_at,
}
GIVEN_UP = {"pages", "email", "webhooks", "registry_removals"}
_TABLES = (
    *(Contact, Mail, WebhookDelivery, WebhookEndpoint, AuditStreamEntry, AuditStream),
    *(AlertChange, RegistryRemoval, RegistryRepository, BackchannelSession, AssignmentNotice),
)


@pytest.fixture(autouse=True)
def empty_queues(gatebell: LiveGatebell) -> None:
    get_administrator_browser(gatebell)
    with database_of(gatebell) as session:
        for table in _TABLES:
            session.execute(delete(table))


def fill(gatebell: LiveGatebell, queue: str, *, has_failed: bool) -> str:
    """Store one row that has waited for an hour, and return the ID of its destination."""
    owner = alice(gatebell)
    path = make_project(gatebell, owner)
    client = make_application(gatebell, owner)
    if queue == "assignment_notices":
        made = gatebell.cli("integrations", "create", path, "--type", "http", "--name", "Nagios")
        headers = {"Authorization": f"Bearer {made['key']}"}
        gatebell.http().post(made["url"], json={"title": "Down"}, headers=headers)
    with database_of(gatebell) as session:
        place = Place(
            gatebell=gatebell,
            session=session,
            keyring=Keyring(settings_of(gatebell).secret_key),
            project_id=session.scalars(select(Project.id).where(Project.path == path)).one(),
            user_id=session.scalars(select(User.id).where(User.username == owner.username)).one(),
            at=now() - _HOUR,
            application_id=client.id,
            has_failed=has_failed,
        )
        return FILLS[queue](place)


def read_metric(gatebell: LiveGatebell, name: str, queue: str) -> float:
    text = gatebell.http().get(f"{gatebell.url}/metrics").text
    assert text.count(f"# TYPE gatebell_queue_{name} gauge") == 1
    found = re.search(rf'^gatebell_queue_{name}{{queue="{queue}"}} (\S+)$', text, re.MULTILINE)
    assert found, text
    return float(found[1])


def listed(gatebell: LiveGatebell, command: str = "failing") -> list[dict[str, Any]]:
    key = "queues" if command == "list" else "destinations"
    found: list[dict[str, Any]] = gatebell.cli("queues", command)[key]
    return found


def page_text(gatebell: LiveGatebell) -> Any:
    page = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin/queues")
    assert page.status_code == 200
    return page


def row_of(page: str, title: str) -> str:
    """Return the text of a queue's row, with one space between words."""
    row = re.search(rf"<tr[^>]*>\s*<th[^>]*>{re.escape(title)}</th>.*?</tr>", page, re.DOTALL)
    assert row, page
    return " ".join(re.sub(r"<[^>]+>", " ", row[0]).split()).removeprefix(f"{title} ")


def count_events(gatebell: LiveGatebell, kind: str, queue: str, destination_id: str) -> int:
    with database_of(gatebell) as session:
        events = session.scalars(select(AuditEvent).where(AuditEvent.kind == kind)).all()
        wanted = {"queue": queue, "destination_id": destination_id}
        return sum(wanted.items() <= each.details.items() for each in events)


def test_each_queue_has_a_title_and_a_test() -> None:
    assert [each.name for each in QUEUES] == list(FILLS)
    assert {each.name for each in QUEUES if each.give_up} == GIVEN_UP
    assert len({each.title for each in QUEUES}) == len(QUEUES)


@pytest.mark.parametrize("queue", FILLS)
def test_a_waiting_item_is_counted_with_its_age(gatebell: LiveGatebell, queue: str) -> None:
    assert read_metric(gatebell, "oldest_age_seconds", queue) == 0
    fill(gatebell, queue, has_failed=False)
    title = next(each.title for each in QUEUES if each.name == queue)
    page = page_text(gatebell).text
    assert re.fullmatch(r"1 .*\(1 h ago\) 0", row_of(page, title))
    assert "No destination is failing." in page
    (state,) = [each for each in listed(gatebell, "list") if each["name"] == queue]
    assert (state["waiting"], state["failing"]) == (1, 0)
    assert read_metric(gatebell, "waiting", queue) == 1
    assert read_metric(gatebell, "failing", queue) == 0
    assert 3600 <= read_metric(gatebell, "oldest_age_seconds", queue) < 3700


@pytest.mark.parametrize("queue", DUE)
def test_a_failing_destination_is_shown_and_retried(gatebell: LiveGatebell, queue: str) -> None:
    destination_id = fill(gatebell, queue, has_failed=True)
    assert read_metric(gatebell, "failing", queue) == 1
    assert read_metric(gatebell, "waiting", queue) == 1
    (shown,) = listed(gatebell)
    assert (shown["queue"], shown["id"], shown["waiting"]) == (queue, destination_id, 1)
    assert shown["can_be_given_up"] == (queue in GIVEN_UP)
    page = page_text(gatebell)
    assert "No destination is failing." not in page.text
    for secret in (_SECRET, _ADDRESS):
        assert secret not in page.text
        assert secret not in json.dumps(shown)
    ending = f"/admin/queues/{queue}/{destination_id}/retry"
    browser = get_administrator_browser(gatebell)
    assert submit(browser, page, form_to(page, ending)).status_code == 302
    with database_of(gatebell) as session:
        due_at = session.scalars(select(DUE[queue])).one()
        assert due_at is None or due_at <= now()
        assert session.scalar(select(func.count()).where(BackchannelSession.tries == 3)) == 0
    assert count_events(gatebell, "queue.retried", queue, destination_id) == 1
    assert "Retrying now." in page_text(gatebell).text


@pytest.mark.parametrize("queue", sorted(GIVEN_UP))
def test_a_destination_can_be_given_up(gatebell: LiveGatebell, queue: str) -> None:
    destination_id = fill(gatebell, queue, has_failed=True)
    page = page_text(gatebell)
    ending = f"/admin/queues/{queue}/{destination_id}/give_up"
    browser = get_administrator_browser(gatebell)
    assert submit(browser, page, form_to(page, ending)).status_code == 302
    assert read_metric(gatebell, "waiting", queue) == 0
    assert count_events(gatebell, "queue.given_up", queue, destination_id) == 1
    after = page_text(gatebell).text
    assert "Given up. No further attempt is made." in after
    assert f"{destination_id}/retry" not in after


def test_given_up_pages_are_listed_and_can_be_sent_again(gatebell: LiveGatebell) -> None:
    destination_id = fill(gatebell, "pages", has_failed=True)
    gatebell.cli("queues", "give-up", "pages", destination_id)
    with database_of(gatebell) as session:
        message = session.scalars(select(PageMessage)).one()
        assert (message.outcome, message.ended_at is not None) == ("given_up", True)
        contact = session.scalars(select(Contact)).one()
        assert contact.next_try_at is None
        ending = f"/admin/queues/messages/{message.id}/send_again"
    form_to(page_text(gatebell), ending)


def test_a_contact_is_not_given_up_while_a_message_is_being_sent(gatebell: LiveGatebell) -> None:
    destination_id = fill(gatebell, "pages", has_failed=True)
    with database_of(gatebell) as session:
        session.execute(update(Contact).values(claimed_until=now() + _HOUR))
    refused = gatebell.run_cli("queues", "give-up", "pages", destination_id)
    assert "is being sent" in json.loads(refused.stderr)["error"]
    with database_of(gatebell) as session:
        assert session.scalars(select(PageMessage.outcome)).one() is None


def test_given_up_emails_are_listed_without_their_secrets(gatebell: LiveGatebell) -> None:
    fill(gatebell, "email", has_failed=True)
    gatebell.cli("queues", "give-up", "email", "mail.example")
    page = page_text(gatebell).text
    assert "recipient rejected (450)" in page
    assert gatebell.cli("mail", "status")["given_up"] == 1
    with database_of(gatebell) as session:
        text = session.scalars(select(Mail.text_ciphertext)).one()
    kept = Keyring(settings_of(gatebell).secret_key).decrypt(text or "")
    assert kept == "Open http://gate.example/users/password/… now."


def test_given_up_deliveries_stay_in_the_log_of_the_webhook(gatebell: LiveGatebell) -> None:
    destination_id = fill(gatebell, "webhooks", has_failed=True)
    gatebell.cli("queues", "give-up", "webhooks", destination_id)
    with database_of(gatebell) as session:
        row = session.scalars(select(WebhookDelivery)).one()
        assert (row.state, row.next_try_at) == ("failed", None)
        assert row.error == "Canceled: an administrator gave up the delivery."


def test_commands_retry_and_explain_what_they_cannot_do(gatebell: LiveGatebell) -> None:
    destination_id = fill(gatebell, "audit_streams", has_failed=True)
    done = gatebell.cli("queues", "retry", "audit_streams", destination_id)
    assert (done["queue"], done["last_error"]) == ("audit_streams", "status 503")
    for arguments, said in (
        (("give-up", "audit_streams", destination_id), "cannot be given up"),
        (("retry", "webhooks", "123"), "Destination not found"),
        (("retry", "letters", "123"), "Queue not found"),
    ):
        refused = gatebell.run_cli("queues", *arguments)
        assert refused.returncode == 1
        assert said in json.loads(refused.stderr)["error"]


def test_delayed_and_paused_items_are_not_waiting(gatebell: LiveGatebell) -> None:
    for queue in ("pages", "email", "webhooks", "audit_streams"):
        fill(gatebell, queue, has_failed=False)
    with database_of(gatebell) as session:
        later = now() + _HOUR
        session.execute(update(PageMessage).values(due_at=later))
        session.execute(update(Mail).values(send_at=later))
        session.execute(update(WebhookEndpoint).values(paused_at=now()))
        session.execute(update(AuditStream).values(paused_at=now()))
    assert {each["waiting"] for each in listed(gatebell, "list")} == {0}


def test_a_logout_notification_waits_since_the_sign_in_ended(gatebell: LiveGatebell) -> None:
    fill(gatebell, "logout_notifications", has_failed=False)
    signed_in(gatebell, make_user(gatebell))
    with database_of(gatebell) as session:
        sign_in_id = session.scalar(select(func.max(SignIn.id)))
        session.execute(update(BackchannelSession).values(sign_in_id=sign_in_id, ended_at=None))
    assert read_metric(gatebell, "waiting", "logout_notifications") == 0
    with database_of(gatebell) as session:
        before = session.scalars(select(BackchannelSession.ended_at)).one()
        session.execute(delete(SignIn).where(SignIn.id == sign_in_id))
    assert before is None
    assert read_metric(gatebell, "waiting", "logout_notifications") == 1
    assert read_metric(gatebell, "oldest_age_seconds", "logout_notifications") < 60


def test_only_administrators_see_and_change_queues(gatebell: LiveGatebell) -> None:
    destination_id = fill(gatebell, "email", has_failed=True)
    browser = signed_in(gatebell, make_user(gatebell))
    assert browser.get(f"{gatebell.url}/admin/queues").status_code == 404
    profile = browser.get(f"{gatebell.url}/-/user_settings/profile")
    # The user's own token, so that only the administrator check can reject the request.
    token = next(each.value("csrf_token") for each in forms_in(profile.text) if each.has("name"))
    for action in ("retry", "give_up"):
        url = f"{gatebell.url}/admin/queues/email/{destination_id}/{action}"
        assert browser.post(url, data={"csrf_token": token}).status_code == 404
    with database_of(gatebell) as session:
        assert session.scalar(select(func.count()).where(Mail.send_at > now())) == 1


def test_the_former_address_redirects(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, get_shared_administrator(gatebell))
    answer = browser.get(f"{gatebell.url}/admin/notifications", allow_redirects=False)
    assert answer.status_code == 301
    assert answer.headers["Location"].endswith("/admin/queues")
