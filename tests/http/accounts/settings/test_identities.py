"""Tests of connected provider accounts, and of accounts without a password."""

from urllib.parse import urlsplit

import gitlab
import pytest
import requests
from sqlalchemy import delete, select, update

from domain.audit.events import EventKind
from models import Identity, SignIn, User
from tests.support.accounts.administration import (
    find_user_id,
    get_shared_administrator,
    submit_form_by_ending,
)
from tests.support.accounts.people import database_of, make_user, open_browser
from tests.support.accounts.personal_tokens import make_token
from tests.support.database.audit_log import get_event_about_user
from tests.support.mail.email_links import new_address
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import (
    FakeProvider,
    add_provider,
    open_response_url,
    sign_in_through,
)
from tests.support.sign_in.provider_groups import person_of
from tests.support.sign_in.second_factors import assert_signed_in, is_signed_in
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

AGAIN = "/users/sign_in?again=yes"
SECURITY = "/-/user_settings/security"


def get(gatebell: LiveGatebell, browser: requests.Session, path: str) -> requests.Response:
    return browser.get(gatebell.url + path)


def connect(
    gatebell: LiveGatebell, browser: requests.Session, provider: FakeProvider, slug: str
) -> requests.Response:
    """Connect an account of the provider, and return the next page."""
    page = get(gatebell, browser, f"{SECURITY}/identities/{slug}")
    begun = submit(browser, page, form_to(page, f"/identities/{slug}"))
    assert begun.status_code == 302, begun.text
    answer = open_response_url(browser, provider.response_to(begun.headers["Location"]))
    assert (answer.status_code, answer.headers["Location"]) == (302, SECURITY), answer.text
    return get(gatebell, browser, SECURITY)


def expire_proofs(gatebell: LiveGatebell, username: str) -> None:
    """Make all sign-ins of a user too old to count as proof."""
    mine = select(User.id).where(User.username == username)
    with database_of(gatebell) as session:
        old = update(SignIn).where(SignIn.user_id.in_(mine))
        session.execute(old.values(is_proof=False))


def newcomer(gatebell: LiveGatebell, provider: FakeProvider, slug: str) -> requests.Session:
    """Return the browser of a user whose account was created by the provider."""
    browser = gatebell.http()
    assert_signed_in(sign_in_through(gatebell, provider, slug, browser))
    return browser


@pytest.mark.long
@pytest.mark.both_databases
def test_a_connected_user_can_sign_in_through_the_provider(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    page = connect(gatebell, open_browser(gatebell, charlie), provider, slug)
    assert "Your account is connected to" in page.text
    assert provider.person["email"] in page.text
    get_event_about_user(gatebell, charlie, EventKind.IDENTITY_CONNECTED)
    browser = gatebell.http()
    assert_signed_in(sign_in_through(gatebell, provider, slug, browser))
    assert f"@{charlie.username}" in get(gatebell, browser, "/-/user_settings/profile").text


@pytest.mark.long
def test_connecting_and_disconnecting_need_a_recent_sign_in(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    connect(gatebell, browser, provider, slug)
    page = get(gatebell, browser, SECURITY)
    expire_proofs(gatebell, charlie.username)
    for path in (f"{SECURITY}/identities/{slug}",):
        answer = browser.get(gatebell.url + path, allow_redirects=False)
        assert answer.headers["Location"].startswith("/users/sign_in?again=yes"), answer.text
    answer = submit(browser, page, form_to(page, "/disconnect"))
    assert answer.headers["Location"].startswith("/users/sign_in?again=yes")


def test_a_provider_account_can_be_connected_with_only_one_user(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    charlie, dora = make_user(gatebell, name="charlie"), make_user(gatebell, name="dora")
    browser = open_browser(gatebell, charlie)
    connect(gatebell, browser, provider, slug)
    other = connect(gatebell, open_browser(gatebell, dora), provider, slug)
    assert "Another user is already connected with this account" in other.text
    # A connected provider is not offered a second time.
    assert get(gatebell, browser, f"{SECURITY}/identities/{slug}").status_code == 404
    assert get(gatebell, browser, f"{SECURITY}/identities/unknown").status_code == 404


def test_a_response_connects_only_the_account_that_requested_it(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    charlie, dora = make_user(gatebell, name="charlie"), make_user(gatebell, name="dora")
    browser = open_browser(gatebell, charlie)
    page = get(gatebell, browser, f"{SECURITY}/identities/{slug}")
    begun = submit(browser, page, form_to(page, f"/identities/{slug}"))
    response = provider.response_to(begun.headers["Location"])
    # In the meantime, another user signs in with this browser, and with another one.
    for other in (open_browser(gatebell, dora), gatebell.http()):
        assert open_response_url(other, response).status_code == 400
    # In the meantime, the browser is signed out from elsewhere.
    with database_of(gatebell) as session:
        session.execute(delete(SignIn).where(SignIn.user_id == find_user_id(gatebell, charlie)))
    assert open_response_url(browser, response).status_code == 400
    with database_of(gatebell) as session:
        mine = select(Identity).where(Identity.subject == provider.person["sub"])
        assert session.scalars(mine).all() == []


@pytest.mark.long
@pytest.mark.both_databases
def test_disconnecting_signs_out_other_browsers_that_used_the_provider(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    by_password = open_browser(gatebell, charlie)
    connect(gatebell, by_password, provider, slug)
    here, there = gatebell.http(), gatebell.http()
    for browser in (here, there):
        assert_signed_in(sign_in_through(gatebell, provider, slug, browser))
    page = get(gatebell, here, SECURITY)
    assert submit(here, page, form_to(page, "/disconnect")).status_code == 302
    assert [is_signed_in(gatebell, each) for each in (by_password, here, there)] == [
        True,
        True,
        False,
    ]
    get_event_about_user(gatebell, charlie, EventKind.IDENTITY_DISCONNECTED)


def test_the_only_sign_in_method_cannot_be_removed(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = newcomer(gatebell, provider, slug)
    page = get(gatebell, browser, SECURITY)
    submit(browser, page, form_to(page, "/disconnect"))
    assert "This account is your only way to sign in" in get(gatebell, browser, SECURITY).text
    assert is_signed_in(gatebell, browser)
    # It can be removed as soon as there is a second method.
    provider_there, first = add_provider(gatebell, provider.url), dict(provider.person)
    connect(gatebell, browser, provider, provider_there)
    provider.person = first
    page = get(gatebell, browser, SECURITY)
    submit(browser, page, form_to(page, "/disconnect"))
    assert "no longer connected" in get(gatebell, browser, SECURITY).text


def test_users_cannot_disconnect_identities_of_others(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = newcomer(gatebell, provider, slug)
    page = get(gatebell, browser, SECURITY)
    form = form_to(page, "/disconnect")
    dora = open_browser(gatebell, make_user(gatebell, name="dora"))
    own = get(gatebell, dora, SECURITY)
    token = form_with(own, "new_password").value("csrf_token")
    for address in (form.action, f"{SECURITY}/identities/{2**62}/disconnect"):
        answer = dora.post(gatebell.url + address, data={"csrf_token": token})
        assert answer.status_code == 404


@pytest.mark.long
@pytest.mark.both_databases
def test_a_user_without_a_password_can_set_one_after_a_recent_sign_in(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = newcomer(gatebell, provider, slug)
    person = person_of(provider)
    new = "of rain upon tin roofs"
    expire_proofs(gatebell, person.username)
    page = get(gatebell, browser, SECURITY)
    form = form_with(page, "new_password")
    assert not form.has("current_password")
    assert "Your account has no password" in page.text
    refused = submit(browser, page, form, new_password=new, repeat_password=new)
    assert refused.status_code == 422
    assert "Sign in again to confirm that it is you" in refused.text
    assert_signed_in(sign_in_through(gatebell, provider, slug, browser, at=AGAIN))
    page = get(gatebell, browser, SECURITY)
    done = submit(
        browser, page, form_with(page, "new_password"), new_password=new, repeat_password=new
    )
    assert done.status_code == 302, done.text
    page = get(gatebell, browser, SECURITY)
    assert form_with(page, "new_password").has("current_password")
    by_password = gatebell.http()
    page = get(gatebell, by_password, "/users/sign_in")
    form = form_with(page, "password")
    assert_signed_in(submit(by_password, page, form, login=person.username, password=new))


@pytest.mark.advisory("CVE-2022-1162")
def test_no_password_signs_in_to_an_account_without_a_password(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    newcomer(gatebell, provider, slug)
    browser = gatebell.http()
    for password in ("", " ", "None"):
        page = get(gatebell, browser, "/users/sign_in")
        form, name = form_with(page, "password"), provider.person["preferred_username"]
        assert submit(browser, page, form, login=name, password=password).status_code == 422


@pytest.mark.parametrize(
    "path", ["/authenticator", "/authenticator/remove", "/recovery_codes/renew", "/passkeys/new"]
)
def test_pages_that_need_a_password_explain_how_to_continue_without_one(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, path: str
) -> None:
    browser = newcomer(gatebell, provider, slug)
    expire_proofs(gatebell, person_of(provider).username)
    page = get(gatebell, browser, SECURITY + path)
    if page.url.endswith(SECURITY):  # The account has no second factor yet.
        return
    assert page.status_code == 200
    assert "Your account has no password" in page.text
    assert 'name="current_password"' not in page.text
    if path == "/authenticator/remove":
        answer = submit(browser, page, form_to(page, path))
        assert answer.status_code == 422
        assert "Sign in again to confirm that it is you" in answer.text
    if path == "/passkeys/new":
        form = form_to(page, path)
        address = f"{gatebell.url}{SECURITY}/passkeys/new.json"
        answer = browser.post(address, data=form.filled(name="Laptop"))
        assert (answer.status_code, answer.json()["message"][:13]) == (422, "Sign in again")


def test_a_user_without_a_password_needs_a_recent_sign_in_to_change_the_address(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = newcomer(gatebell, provider, slug)
    profile = "/-/user_settings/profile"
    page = get(gatebell, browser, profile)
    form = form_with(page, "email")
    assert not form.has("current_password")
    expire_proofs(gatebell, person_of(provider).username)
    refused = submit(browser, page, form, email=new_address())
    assert refused.status_code == 422
    assert "Sign in again" in refused.text
    # A change of the name needs no recent sign-in.
    assert submit(browser, page, form, name="Dana D.").status_code == 302


def test_a_sign_in_without_auth_time_does_not_count_as_proof(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    provider.claims = {"auth_time": None}
    browser = newcomer(gatebell, provider, slug)
    with database_of(gatebell) as session:
        mine = User.id == find_user_id(gatebell, person_of(provider))
        session.execute(update(User).where(mine).values(is_admin=True))
    page = get(gatebell, browser, "/admin/member_roles/new")
    answer = submit(browser, page, form_with(page, "description"), name="x", base="20")
    assert urlsplit(answer.headers["Location"]).path == "/users/sign_in"


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("face", ["page", "python-gitlab", "command"])
def test_an_administrator_can_see_and_disconnect_identities(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, face: str
) -> None:
    browser = newcomer(gatebell, provider, slug)
    person, subject = person_of(provider), provider.person["sub"]
    user_id = find_user_id(gatebell, person)
    page_path = f"/admin/users/{user_id}"
    page = get(gatebell, open_browser(gatebell, get_shared_administrator(gatebell)), page_path)
    assert f"as {person.email}" in words(page)
    token = make_token(gatebell, get_shared_administrator(gatebell)).clear
    with gitlab.Gitlab(gatebell.url, private_token=token) as library:
        library.session.trust_env = False  # Bypass the proxy of the environment.
        user = library.users.get(user_id)
        assert user.identities == [{"provider": slug, "extern_uid": subject}]
        (listed,) = library.users.list(username=person.username, get_all=True)
        assert listed.identities == user.identities
        if face == "page":
            assert (
                submit_form_by_ending(gatebell, page_path, f"/disconnect/{slug}").status_code == 302
            )
        elif face == "command":
            assert gatebell.cli("users", "disconnect", person.username, slug)["identities"] == []
        else:
            user.identityproviders.delete(slug)
        assert library.users.get(user_id).identities == []
        with pytest.raises(gitlab.GitlabDeleteError, match="not linked"):
            user.identityproviders.delete(slug)
    assert not is_signed_in(gatebell, browser)
    get_event_about_user(gatebell, person, EventKind.IDENTITY_DISCONNECTED)
    assert (
        slug
        not in get(
            gatebell, open_browser(gatebell, get_shared_administrator(gatebell)), page_path
        ).text
    )
