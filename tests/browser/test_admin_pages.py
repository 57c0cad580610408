"""Administration, audit log and API changes, in light and dark mode, in both widths, and in use."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from domain.accounts.users import get_user
from domain.audit.events import (
    STREAMED_ONLY,
    Event,
    EventActor,
    EventKind,
    EventSource,
    NamespaceIds,
    store_event,
)
from domain.releases.usage.call_counts import (
    ANONYMOUS_CONSUMER,
    CallTotals,
    Consumer,
    CountedCalls,
    UsageSignature,
    store_call_counts,
)
from models import AuditStream, User
from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at, problems_of
from tests.browser.page_lists import add_provider, remove_providers
from tests.support.accounts.administration import (
    forget_settings,
    read_stored_settings,
    store_setting,
)
from tests.support.accounts.people import (
    CALLBACK,
    Person,
    database_of,
    make_application,
    make_user,
    now,
    set_state,
    sign_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.service.message_receiver import running_receiver

#: Number of parts of the pages, which are checked at the same time.
PARTS = 3
_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SHAPES = (
    UsageSignature("GET", "/api/v4/users", ("page",), ("users-offset-pagination",)),
    UsageSignature("PUT", "/api/v4/projects/:id", ("operations_access_level",), ()),
    UsageSignature("GET", "/api/v4/projects", (), ()),
)


@pytest.fixture(scope="module")
def root(live_sqlite: LiveGatebell) -> Person:
    """An administrator with many events, who uses features that later releases change."""
    person = make_user(live_sqlite, name="root", admin=True)
    with database_of(live_sqlite) as session:
        user = get_user(person.username, session=session)
        source = EventSource(
            actor=EventActor(id=user.id, name=user.username),
            address="2001:db8:1234:5678:9abc:def0:1234:5678",
        )
        about = (("Deploy Board", {"scopes": "api"}), (NASTY, {NASTY[:40]: NASTY}))
        for kind in set(EventKind) - STREAMED_ONLY:
            for subject, details in about:
                event = Event(
                    kind=kind,
                    user_id=user.id,
                    subject=subject,
                    details=details,
                    place=NamespaceIds(),
                )
                store_event(event, source, session=session, now=now())
    token = make_token(live_sqlite, person, name=NASTY[:100])
    board = make_application(live_sqlite, person, name=NASTY[:100])
    count = CallTotals(1_234, now() - timedelta(days=3), now(), "2001:db8::7")
    callers = (Consumer(user.id, None, token.id), Consumer(user.id, board.client_id, None))
    counted = [
        CountedCalls(each, shape, count)
        for each in (*callers, ANONYMOUS_CONSUMER)
        for shape in SHAPES
    ]
    with database_of(live_sqlite) as session:
        store_call_counts(counted, session=session)
    return person


@pytest.fixture(scope="module")
def addresses(live_sqlite: LiveGatebell, root: Person) -> Iterator[list[str]]:
    """Pages that show one object of each kind."""
    owner = make_user(live_sqlite, name="owner")
    with database_of(live_sqlite) as session:
        user_id = get_user(owner.username, session=session).id
        user = session.get_one(User, user_id)
        user.name, user.must_change_password = NASTY, True
    set_state(live_sqlite, make_user(live_sqlite, name="locked"), "locked")
    nasty = (CALLBACK, "http://a.example/")
    made = make_application(live_sqlite, owner, name=NASTY[:100], redirect_uris=nasty)
    connect(live_sqlite).accepted(title="It works")
    live_sqlite.cli(
        *("applications", "create", "Wiki", "--owner", root.username, "--scopes", "openid"),
        *("--redirect-uri", CALLBACK, "--trusted", "--instance-wide"),
    )
    live_sqlite.cli("keys", "rotate")
    provider_id = add_provider(live_sqlite, NASTY, unique("idp"))
    store_setting(live_sqlite, "page_size", "5")
    store_setting(live_sqlite, "oauth2_device_grant_flow", "false")
    yield [
        *("/admin", "/admin/deliveries?received_after=2026-01-01", "/admin/queues"),
        *(f"/admin/users?group={group}" for group in ("people", "locked")),
        *("/admin/users?search=nobody-at-all", "/admin/users/new", f"/admin/users/{user_id}"),
        *("/admin/member_roles", "/admin/member_roles/new"),
        *("/admin/identity_providers", "/admin/identity_providers/new"),
        "/admin/identity_providers/new?preset=entra",
        "/admin/identity_providers/new?preset=github",
        f"/admin/identity_providers/{provider_id}",
        *(f"/admin/users/{user_id}/delete", f"/admin/users/{user_id}/edit"),
        *("/admin/applications", "/admin/applications?of=users", "/admin/applications/new"),
        *(f"/admin/applications/{made.id}{end}" for end in ("", "/edit", "/delete")),
        *("/admin/settings", "/admin/settings/feature-flags", "/admin/settings/address"),
        *("/admin/settings/applications-and-tokens", "/admin/settings/rate-limits"),
        *("/admin/settings/interfaces-and-records", "/admin/settings/appearance", "/admin/keys"),
        *("/admin/registry", "/admin/api_usage", "/admin/api_usage?search=nobody-at-all"),
        *("/admin/audit", "/admin/audit?kind=token.revoked&since=2026-01-01"),
        "/-/user_settings/activity",
    ]
    forget_settings(live_sqlite)
    remove_providers(live_sqlite)


@pytest.fixture
def desk(live_sqlite: LiveGatebell, page: Page, root: Person) -> Page:
    """A page in which the administrator is signed in."""
    have_signed_in(page, live_sqlite, root)
    return page


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_the_pages_of_the_administration_have_no_problems(
    live_sqlite: LiveGatebell, desk: Page, addresses: list[str], part: int
) -> None:
    paths = addresses[part::PARTS]
    problems = [each for path in paths for each in problems_at(desk, live_sqlite.url + path)]
    assert problems == []


@pytest.mark.long
def test_a_password_is_reset_and_revealed_on_a_phone(live_sqlite: LiveGatebell, desk: Page) -> None:
    desk.set_viewport_size({"width": 360, "height": 800})
    charlie = make_user(live_sqlite, name="charlie")
    desk.goto(f"{live_sqlite.url}/admin/users?search={charlie.username}")
    desk.get_by_role("link", name=charlie.username).click()
    desk.locator("summary", has_text="Reset password").click()
    desk.get_by_role("button", name="Reset password").click()
    password = desk.locator("#new-password")
    expect(password).to_be_hidden()
    desk.locator("summary", has_text="Reveal").click()
    expect(password).to_be_visible()
    helped = Person(username=charlie.username, email="", password=password.inner_text())
    page = sign_in(live_sqlite, helped).get(f"{live_sqlite.url}/groups")
    assert page.url.endswith("/-/user_settings/security")


@pytest.mark.long
def test_a_setting_is_changed_and_reset(live_sqlite: LiveGatebell, desk: Page) -> None:
    forget_settings(live_sqlite)
    desk.goto(f"{live_sqlite.url}/admin/settings")
    desk.get_by_role("link", name="Change applications and tokens").click()
    field = desk.get_by_label("Refresh replay")
    field.fill("61")
    desk.get_by_role("button", name="Save settings").click()
    expect(field).to_be_focused()
    expect(field).to_have_value("61")
    field.fill("30")
    field.press("Enter")  # Pressing Enter does not navigate back by accident.
    expect(desk.get_by_text("Saved: Refresh replay.")).to_be_visible()
    assert read_stored_settings(live_sqlite) == {"refresh_replay_seconds": "30"}
    desk.get_by_role("button", name="Reset for Refresh replay").click()
    expect(field).to_have_value("10")
    assert read_stored_settings(live_sqlite) == {}


# The audit log and a user's own activity


@pytest.fixture
def failing(live_sqlite: LiveGatebell) -> Iterator[str]:
    """A destination with failed deliveries for days and lost events."""
    made = live_sqlite.cli("audit-streams", "create", "--url", "http://127.0.0.1:1/" + "x" * 200)
    before = now() - timedelta(days=3)
    with database_of(live_sqlite) as session:
        stream = session.get_one(AuditStream, made["id"])
        stream.failing_since = stream.last_failed_at = stream.last_dropped_at = before
        stream.tries, stream.dropped, stream.last_error = 40, 1_000, "the connection was refused"
        stream.next_try_at = now() + timedelta(hours=1)
        stream.previous_secret_expires_at = now() + timedelta(hours=1)
    yield f"{live_sqlite.url}/admin/audit_streams/{made['id']}"
    live_sqlite.cli("audit-streams", "delete", str(made["id"]))


@pytest.mark.long
def test_the_pages_of_streams_have_no_problems(
    live_sqlite: LiveGatebell, desk: Page, failing: str
) -> None:
    base = f"{live_sqlite.url}/admin/audit_streams"
    addresses = (failing, base, f"{base}/new", f"{live_sqlite.url}/admin")
    assert [problem for address in addresses for problem in problems_at(desk, address)] == []


@pytest.mark.long
def test_the_overview_links_to_a_failing_destination(
    live_sqlite: LiveGatebell, desk: Page, failing: str
) -> None:
    desk.goto(f"{live_sqlite.url}/admin")
    expect(desk.get_by_role("heading", name="Action needed")).to_be_visible()
    desk.get_by_role("link", name="Open audit stream").click()
    expect(desk).to_have_url(failing)


@pytest.mark.long
def test_a_destination_is_added_and_its_secret_revealed(
    live_sqlite: LiveGatebell, desk: Page
) -> None:
    with running_receiver() as receiver:
        desk.goto(f"{live_sqlite.url}/admin/audit_streams/new")
        desk.get_by_label("URL").fill(receiver.url)
        desk.get_by_role("button", name="Add destination").click()
        desk.get_by_text("Reveal").click()
        expect(desk.get_by_text("whsec_")).to_be_visible()
        desk.get_by_role("button", name="Send test event").click()
        expect(desk.get_by_text("Test event delivered: 204")).to_be_visible()
        desk.get_by_text("Delete destination").first.click()
        desk.get_by_role("button", name="Delete destination").click()
        expect(desk.get_by_role("status")).to_contain_text("deleted.")
    assert receiver.of("audit_stream.tested")


@pytest.mark.long
def test_a_filter_is_selected_and_reset(live_sqlite: LiveGatebell, desk: Page) -> None:
    desk.goto(f"{live_sqlite.url}/admin/audit")
    desk.get_by_label("Event").select_option("Token revoked")
    desk.get_by_role("button", name="Filter").click()
    expect(desk.get_by_role("row").filter(has_text="Token revoked").first).to_be_visible()
    expect(desk.get_by_role("row").filter(has_text="Token rotated")).to_have_count(0)
    desk.get_by_role("link", name="Show all").click()
    expect(desk.get_by_label("Event")).to_have_value("")


def test_another_browser_is_signed_out(live_sqlite: LiveGatebell, desk: Page, root: Person) -> None:
    desk.set_viewport_size({"width": 360, "height": 800})
    other = live_sqlite.http()
    other.headers["User-Agent"] = _AGENT
    other.cookies.update(sign_in(live_sqlite, root).cookies)
    desk.goto(f"{live_sqlite.url}/-/user_settings/activity")
    before = desk.get_by_text("You are signed in with").text_content()
    desk.get_by_role("table").first.locator("summary").first.click()
    desk.get_by_role("button", name="Sign out this browser").locator("visible=true").click()
    expect(desk.get_by_text("You are signed out of")).to_be_visible()
    assert desk.get_by_text("You are signed in with").text_content() != before


@pytest.mark.long
def test_title_description_and_messages_are_readable(live_sqlite: LiveGatebell, page: Page) -> None:
    description = (
        "For **all** of Acme.\n\n- Ask [Eve](https://acme.example/eve) for an account.\n"
        "- `gatebell-help` is the channel.\n\n```\n" + "long " * 60 + "\n```\n> Mind the step."
    )
    with changed_settings(
        live_sqlite,
        appearance_title="Acme's alerts " + "very-long-word" * 6,
        appearance_description=description,
        header_message="Maintenance on Sunday, " + "very-long-word" * 12,
        footer_message="Staging",
    ):
        assert problems_at(page, f"{live_sqlite.url}/users/sign_in") == []
        expect(page.get_by_text("Maintenance on Sunday")).to_be_visible()
        expect(page.get_by_role("link", name="Eve")).to_have_attribute(
            "href", "https://acme.example/eve"
        )


# Changes of releases


@pytest.fixture
def early_release(live_sqlite: LiveGatebell) -> Iterator[None]:
    """Runs a release before all changes."""
    forget_settings(live_sqlite)
    store_setting(live_sqlite, "release", "15.11")
    yield
    forget_settings(live_sqlite)


@pytest.mark.long
@pytest.mark.usefixtures("early_release")
def test_the_pages_of_an_early_release_have_no_problems(
    live_sqlite: LiveGatebell, desk: Page
) -> None:
    usage = "/admin/api_usage"
    paths = ("/-/user_settings/api_changes", usage, f"{usage}?change=users-offset-pagination")
    problems = [each for path in paths for each in problems_at(desk, live_sqlite.url + path)]
    ask_for_17(live_sqlite, desk)
    assert problems + problems_of(desk) == []


@pytest.mark.long
@pytest.mark.usefixtures("early_release")
def test_a_release_is_changed_without_scripts_after_a_confirmation(
    live_sqlite: LiveGatebell, root: Person, plain_page: Page
) -> None:
    have_signed_in(plain_page, live_sqlite, root)
    ask_for_17(live_sqlite, plain_page)
    expect(plain_page.get_by_role("heading", level=1)).to_have_text(
        "Change the running release to 17.0?"
    )
    expect(plain_page.get_by_text("consumers would break within a second")).to_be_visible()
    plain_page.get_by_role("link", name="Cancel").click()
    assert read_stored_settings(live_sqlite)["release"] == "15.11"

    ask_for_17(live_sqlite, plain_page)
    plain_page.get_by_role("button", name="Change release to 17.0").click()
    expect(plain_page.get_by_text("Saved: Release.")).to_be_visible()
    assert read_stored_settings(live_sqlite)["release"] == "17.0"


def ask_for_17(live_sqlite: LiveGatebell, page: Page) -> None:
    page.goto(f"{live_sqlite.url}/admin/settings/interfaces-and-records")
    page.get_by_label("Release", exact=True).fill("17.0")
    page.get_by_role("button", name="Save settings").click()
