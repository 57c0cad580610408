"""Tests of the consent page: its contents, when it is shown, and who can answer it."""

from datetime import timedelta
from urllib.parse import urljoin

import pytest
import requests
from sqlalchemy import delete, select, update

from models import Application, SignIn, User
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    set_state,
    settings_of,
    signed_in,
)
from tests.support.accounts.sign_ups import seal_test_value, unseal_test_value
from tests.support.oauth.oauth_wire import (
    PKCE,
    STATE,
    assert_refused_on_a_page,
    open_and_follow,
    open_authorization,
    parse_redirect,
    phone_application,
    redeem,
    server_application,
    sign_in_on,
    submit_decision,
)
from tests.support.oauth.pushes import pushed
from tests.support.oauth.visits import Visit
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, forms_in, submit
from tests.support.wire.page_text import shown_words

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """An application of Bob without any consents."""
    return make_application(gatebell, bob(gatebell), name="Deploy & Board")


def is_question(page: requests.Response) -> bool:
    return page.status_code == 200 and 'name="decision"' in page.text


def is_sign_in(page: requests.Response) -> bool:
    return page.status_code == 200 and 'name="password"' in page.text


@pytest.mark.rfc("rfc9700-4.11.2-c")
@pytest.mark.spec("A9")
@pytest.mark.rfc("oidc-core-3.1.2.4-a")
def test_the_consent_page_names_application_owner_user_scopes_and_target(visit: Visit) -> None:
    text = shown_words(visit.open_authorization(scope="read_user read_api"))
    assert "Deploy & Board" in text
    assert "By Bob" in text
    assert alice(visit.gatebell).username in text
    assert "Read your profile" in text
    assert "Read access to the API" in text
    assert "Full access" not in text
    assert "client.example" in text


def test_scopes_that_allow_changes_are_marked(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    every = make_application(gatebell, bob(gatebell), scopes="api read_user write_alerts")
    text = shown_words(open_authorization(browser, gatebell, every))
    assert "Full access to the API Can change everything" in text
    assert "Manage alerts Can make changes" in text
    assert "Read your profile Read your username" in text
    harmless = shown_words(open_authorization(browser, gatebell, every, scope="read_user"))
    assert "Can " not in harmless


@pytest.mark.spec("A8", "A9")
@pytest.mark.rfc("rfc6749-3.1.2.1-a")
def test_the_consent_page_warns_about_an_unencrypted_redirect_uri(visit: Visit) -> None:
    assert "not encrypted" not in shown_words(visit.open_authorization())
    plain = make_application(
        visit.gatebell, bob(visit.gatebell), redirect_uris=("http://client.example/cb",)
    )
    assert "not encrypted" in shown_words(open_authorization(visit.browser, visit.gatebell, plain))


@pytest.mark.spec("A1", "A2")
@pytest.mark.rfc("rfc6749-3.1-a", "rfc6749-3.1-b", "oidc-core-3.1.2.3-a")
def test_the_consent_page_follows_the_sign_in(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    fresh = gatebell.http()
    page = open_authorization(fresh, gatebell, client, state="a&b=c d")
    assert is_sign_in(page)
    assert "Deploy & Board" in shown_words(page)
    question = sign_in_on(fresh, page, alice(gatebell))
    assert parse_redirect(submit_decision(fresh, question))["state"] == "a&b=c d"


@pytest.mark.spec("A3")
@pytest.mark.rfc("rfc6749-4.1.2.1-c", "rfc9207-2-b")
def test_a_cancelled_request_returns_access_denied(visit: Visit) -> None:
    brought = parse_redirect(visit.submit_decision(visit.open_authorization(state="s"), "cancel"))
    assert brought.pop("error_description")
    assert brought == {"error": "access_denied", "state": "s", "iss": visit.gatebell.url}


@pytest.mark.both_databases
@pytest.mark.rfc("oidc-core-3.1.2.4-a")
def test_the_consent_page_asks_only_for_new_scopes(visit: Visit) -> None:
    visit.submit_decision(visit.open_authorization(scope="read_user"))
    assert "code" in parse_redirect(visit.open_authorization(scope="read_user"))
    page = visit.open_authorization(scope="read_user read_api")
    text = shown_words(page)
    asked, _, granted = text.partition("already granted")
    assert "Read access to the API" in asked
    assert "Read your profile" in granted
    assert "Read your profile" not in asked
    visit.submit_decision(page)
    assert "code" in parse_redirect(visit.open_authorization(scope="read_user read_api"))


def test_a_cancelled_request_is_not_remembered(visit: Visit) -> None:
    visit.submit_decision(visit.open_authorization(), "cancel")
    assert is_question(visit.open_authorization())


def test_a_consent_does_not_count_for_other_users(visit: Visit) -> None:
    visit.submit_decision(visit.open_authorization())
    assert is_question(
        open_authorization(
            signed_in(visit.gatebell, bob(visit.gatebell)), visit.gatebell, visit.client
        )
    )


@pytest.mark.advisory("CVE-2023-34246")
@pytest.mark.rfc("rfc6749-10.2-a", "rfc8252-8.6-a")
def test_a_public_application_needs_consent_each_time(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    phone = make_application(gatebell, bob(gatebell), confidential=False)
    submit_decision(browser, open_authorization(browser, gatebell, phone, **PKCE))
    page = open_authorization(browser, gatebell, phone, **PKCE)
    assert is_question(page)
    assert "Read your profile" in shown_words(page)
    assert "You are asked each time" in shown_words(page)


@pytest.mark.rfc("oidc-core-3.1.2.4-a")
def test_a_trusted_application_needs_no_consent(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    assert "code" in parse_redirect(
        open_authorization(browser, gatebell, server_application(gatebell))
    )
    assert "code" in parse_redirect(
        open_authorization(browser, gatebell, phone_application(gatebell), **PKCE)
    )


def test_an_application_that_is_no_longer_trusted_needs_consent(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    client = make_application(gatebell, bob(gatebell), trusted=True)
    assert "code" in parse_redirect(open_authorization(browser, gatebell, client))
    with database_of(gatebell) as session:
        row = Application.uid == client.client_id
        session.execute(update(Application).where(row).values(trusted=False))
    assert is_question(open_authorization(browser, gatebell, client))


@pytest.mark.rfc("oidc-core-3.1.2.1-f", "oidc-core-3.1.2.3-b", "oidc-core-3.1.2.6-a")
def test_prompt_none_shows_no_page(visit: Visit) -> None:
    trusted = make_application(visit.gatebell, bob(visit.gatebell), trusted=True)
    stranger = parse_redirect(
        open_authorization(visit.gatebell.http(), visit.gatebell, trusted, prompt="none")
    )
    assert (stranger["error"], stranger["iss"]) == ("login_required", visit.gatebell.url)
    known = parse_redirect(visit.open_authorization(prompt="none"))
    assert known["error"] == "consent_required"
    visit.submit_decision(visit.open_authorization())
    assert "code" in parse_redirect(visit.open_authorization(prompt="none"))


def test_prompt_none_explains_that_public_applications_always_need_consent(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    public = make_application(gatebell, bob(gatebell), confidential=False)
    submit_decision(browser, open_authorization(browser, gatebell, public, **PKCE))
    told = parse_redirect(open_authorization(browser, gatebell, public, prompt="none", **PKCE))
    assert told["error"] == "consent_required"
    assert "the consent of the user each time" in told["error_description"]
    assert "has not granted" not in told["error_description"]


@pytest.mark.rfc("oidc-core-3.1.2.1-h", "oidc-core-3.1.2.1-i")
@pytest.mark.parametrize("prompt", ["consent", "select_account", "consent select_account"])
def test_an_application_can_request_the_consent_page_despite_an_earlier_consent(
    visit: Visit, prompt: str
) -> None:
    visit.submit_decision(visit.open_authorization())
    page = visit.open_authorization(prompt=prompt)
    assert is_question(page)
    assert "You have already authorized this access." in shown_words(page)
    assert "Use another account" in page.text
    assert "code" in parse_redirect(visit.submit_decision(page))


def test_an_application_can_request_both_a_sign_in_and_a_consent(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    page = open_authorization(
        browser, gatebell, server_application(gatebell), prompt="login consent"
    )
    assert is_sign_in(page)
    assert is_question(sign_in_on(browser, page, alice(gatebell)))


@pytest.mark.both_databases
@pytest.mark.rfc("oidc-core-3.1.2.1-k")
def test_max_age_accepts_a_recent_sign_in_and_rejects_an_old_one(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    client = server_application(gatebell)
    assert "code" in parse_redirect(open_authorization(browser, gatebell, client, max_age="3600"))
    _age_sign_ins(gatebell, charlie, timedelta(hours=2))
    silent = parse_redirect(
        open_authorization(browser, gatebell, client, max_age="3600", prompt="none")
    )
    assert silent["error"] == "login_required"
    assert "code" in parse_redirect(open_authorization(browser, gatebell, client))
    assert is_sign_in(open_authorization(browser, gatebell, client, max_age="3600"))


def _age_sign_ins(gatebell: LiveGatebell, person: Person, age: timedelta) -> None:
    with database_of(gatebell) as session:
        user_id = select(User.id).where(User.username == person.username).scalar_subquery()
        for sign_in_row in session.scalars(select(SignIn).where(SignIn.user_id == user_id)):
            sign_in_row.created_at -= age


@pytest.mark.rfc("oidc-core-3.1.2.1-n")
def test_login_hint_fills_in_the_name(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    hint = '"><script>alert(1)</script>@example'
    page = open_authorization(gatebell.http(), gatebell, client, login_hint=hint)
    assert form_with(page, "login").value("login") == hint
    assert "<script>alert" not in page.text


@pytest.mark.advisory("CVE-2022-39222", "CVE-2023-0264")
@pytest.mark.rfc("rfc6749-10.12-a")
def test_a_consent_form_of_one_session_is_rejected_in_another(visit: Visit) -> None:
    asked_of_alice = form_with(visit.open_authorization(), "decision").value("request")
    for other in (
        signed_in(visit.gatebell, bob(visit.gatebell)),
        open_browser(visit.gatebell, alice(visit.gatebell)),
    ):
        page = open_authorization(other, visit.gatebell, visit.client)
        form = form_with(page, "decision")
        answer = submit(other, page, form, request=asked_of_alice, decision="authorize")
        assert answer.status_code == 303
        assert is_question(open_and_follow(other, urljoin(page.url, answer.headers["Location"])))


@pytest.mark.both_databases
@pytest.mark.parametrize("is_pushed", [True, False], ids=["pushed", "in the URL"])
def test_a_repeated_decision_redirects_with_the_first_code(
    gatebell: LiveGatebell,
    browser: requests.Session,
    is_pushed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    client = make_application(gatebell, bob(gatebell))
    if is_pushed:
        page = open_and_follow(browser, pushed(gatebell, client, state="s"))
    else:
        page = open_authorization(browser, gatebell, client, state="s")
    first = submit_decision(browser, page)
    assert first.headers["Cache-Control"] == "no-store"
    again = [submit_decision(browser, page, each) for each in ("authorize", "cancel")]
    assert [each.headers["Location"] for each in again] == [first.headers["Location"]] * 2
    assert redeem(gatebell, client, parse_redirect(first)["code"]).status_code == 200
    too_late = submit_decision(browser, page)
    assert (too_late.status_code, "already answered" in too_late.text) == (200, True)


def test_a_repeated_cancellation_redirects_with_the_first_response(visit: Visit) -> None:
    page = visit.open_authorization(prompt="consent")
    first = visit.submit_decision(page, "cancel")
    assert visit.submit_decision(page, "cancel").headers["Location"] == first.headers["Location"]
    changed_mind = visit.submit_decision(page)
    assert (changed_mind.status_code, "already answered" in changed_mind.text) == (200, True)


def test_an_expired_consent_form_shows_the_consent_page_again(visit: Visit) -> None:
    page = visit.open_authorization(prompt="consent")
    form = form_with(page, "decision")
    key = settings_of(visit.gatebell).secret_key
    content = unseal_test_value(form.value("request") or "", "consent", key=key)
    old = seal_test_value(content, "consent", age=4_000, key=key)
    answer = submit(visit.browser, page, form, request=old, decision="authorize")
    assert answer.status_code == 303
    assert is_question(
        open_and_follow(visit.browser, urljoin(page.url, answer.headers["Location"]))
    )


def test_a_signed_out_user_returns_to_the_consent_page_after_the_sign_in(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    page = open_authorization(browser, gatebell, client)
    with database_of(gatebell) as session:
        user_id = select(User.id).where(User.username == charlie.username).scalar_subquery()
        session.execute(delete(SignIn).where(SignIn.user_id == user_id))
    answer = submit_decision(browser, page)
    sign_in_page = open_and_follow(browser, urljoin(page.url, answer.headers["Location"]))
    question = sign_in_on(browser, sign_in_page, charlie)
    assert is_question(question)
    assert parse_redirect(submit_decision(browser, question))["state"] == STATE


@pytest.mark.parametrize("change", ["{}x", "x{}", "", "e30", "{}\x00", "é", None])
def test_a_changed_consent_form_is_rejected(visit: Visit, change: str | None) -> None:
    page = visit.open_authorization()
    form = form_with(page, "decision")
    forged = None if change is None else change.format(form.value("request"))
    assert_refused_on_a_page(
        submit(visit.browser, page, form, request=forged, decision="authorize")
    )
    assert is_question(visit.open_authorization())


@pytest.mark.advisory("CVE-2018-15758")
def test_additional_fields_of_the_decision_are_ignored(visit: Visit) -> None:
    page = visit.open_authorization(scope="read_user")
    form = form_with(page, "decision")
    answer = submit(
        visit.browser,
        page,
        form,
        decision="authorize",
        scope="api",
        state="another",
        redirect_uri="https://evil.example/",
    )
    assert answer.headers["Location"].startswith(visit.client.redirect_uri + "?code=")
    assert parse_redirect(answer)["state"] != "another"
    assert is_question(visit.open_authorization(scope="read_user read_api"))


@pytest.mark.parametrize("decision", ["cancel", "deny", "Authorize", "", None, "authorize\x00"])
def test_only_the_button_authorize_authorizes(visit: Visit, decision: str | None) -> None:
    page = visit.open_authorization()
    answer = submit(visit.browser, page, form_with(page, "decision"), decision=decision)
    assert parse_redirect(answer)["error"] == "access_denied"


def test_changes_since_the_consent_page_count_and_the_error_keeps_the_state(visit: Visit) -> None:
    page = visit.open_authorization(state="s")
    with database_of(visit.gatebell) as session:
        row = Application.uid == visit.client.client_id
        session.execute(update(Application).where(row).values(scopes="read_user"))
    brought = parse_redirect(visit.submit_decision(page))
    assert (brought["error"], brought["state"]) == ("invalid_scope", "s")


def test_a_deleted_application_is_rejected_on_a_page(visit: Visit) -> None:
    page = visit.open_authorization()
    with database_of(visit.gatebell) as session:
        session.delete(session.get_one(Application, visit.client.id))
    assert_refused_on_a_page(visit.submit_decision(page))


def test_a_locked_user_cannot_authorize(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    page = open_authorization(browser, gatebell, client)
    set_state(gatebell, charlie, "locked")
    answer = submit_decision(browser, page)
    assert "code=" not in answer.headers.get("Location", "")
    assert is_sign_in(open_authorization(browser, gatebell, client))


@pytest.mark.rfc("oidc-core-3.1.2.1-i")
def test_another_user_can_sign_in_from_the_consent_page(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    page = open_authorization(browser, gatebell, client)
    form = next(each for each in forms_in(page.text) if "sign_out?next=" in each.action)
    answer = submit(browser, page, form)
    sign_in_page = browser.get(gatebell.url + answer.headers["Location"], allow_redirects=False)
    question = sign_in_on(browser, sign_in_page, bob(gatebell))
    assert is_question(question)
    assert bob(gatebell).username in shown_words(question)
