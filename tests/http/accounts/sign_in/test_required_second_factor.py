"""Tests of second factors that the instance or a group requires, now or from a later date."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from html import unescape
from typing import Any
from urllib.parse import urljoin

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from models import Group, Member, User
from tests.conftest import KINDS
from tests.http.accounts.sign_in.test_second_factors import set_up
from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    CALLBACK,
    Person,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role, take_role
from tests.support.database.audit_log import list_events_with_subject
from tests.support.oauth.oauth_wire import (
    open_and_follow,
    open_authorization,
    parse_redirect,
    sign_in_on,
    submit_decision,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.sign_in.openid_provider import FakeProvider, add_provider, sign_in_through
from tests.support.sign_in.passkey_wire import give_passkey
from tests.support.sign_in.second_factors import assert_signed_in, give_app
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

SECURITY = "/-/user_settings/security"
PROFILE = "/-/user_settings/profile"
Start = Callable[..., LiveGatebell]


@pytest.fixture(scope="module", params=KINDS)
def start(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[Start]:
    """A function that starts services that require a second factor, one for each configuration."""
    made: dict[tuple[str, str], LiveGatebell] = {}
    with ExitStack() as opened:

        def start(whom: str, begins: str = "") -> LiveGatebell:
            settings = {"SECOND_FACTOR_REQUIRED": whom, "SECOND_FACTOR_REQUIRED_FROM": begins}
            if (whom, begins) not in made:
                service = new_service(request.param, host="localhost", only="app", **settings)
                made[whom, begins] = opened.enter_context(running(service))
            return made[whom, begins]

        yield start


def day(days: int) -> str:
    return (now() + timedelta(days=days)).date().isoformat()


def opened(service: LiveGatebell, browser: requests.Session, path: str = PROFILE) -> str:
    """Return the redirect location of a page, or its own path if it is shown."""
    answer = browser.get(service.url + path, allow_redirects=False)
    return answer.headers.get("Location", path) if answer.status_code == 302 else path


def token_for_password(service: LiveGatebell, person: Person) -> requests.Response:
    data = {"grant_type": "password", "username": person.username, "password": person.password}
    return service.http().post(f"{service.url}/oauth/token", data=data)


def give_made_password(service: LiveGatebell, person: Person) -> None:
    """Make a user's password temporary, so that the user has to change it."""
    with database_of(service) as session:
        mine = session.query(User).filter_by(username=person.username)
        mine.update({"must_change_password": True})


@pytest.mark.long
def test_a_user_without_a_second_factor_can_only_set_one_up(start: Start) -> None:
    service = start("everybody")
    person = make_user(service)
    browser = open_browser(service, person)
    for path in ("/", PROFILE, "/help", "/groups/new", f"{SECURITY}/recovery_codes/renew"):
        assert opened(service, browser, path) == SECURITY, path
    client = make_application(service, person)
    assert open_authorization(browser, service, client).url == service.url + SECURITY
    page = browser.get(service.url + SECURITY)
    assert "This instance requires two-factor authentication" in words(page)
    for path in (SECURITY, f"{SECURITY}/authenticator"):
        assert opened(service, browser, path) == path
    assert token_for_password(service, person).json()["error"] == "invalid_grant"
    assert submit(browser, page, form_to(page, "/users/sign_out")).status_code == 302


@pytest.mark.parametrize("lacks", ["second factor", "password of their own"])
def test_a_silent_authorization_request_gets_login_required(start: Start, lacks: str) -> None:
    service = start("everybody" if lacks == "second factor" else "nobody")
    person = make_user(service)
    client = make_application(service, person, trusted=True)
    browser = open_browser(service, person)
    if lacks != "second factor":
        give_made_password(service, person)
    landed = open_authorization(browser, service, client, prompt="none").headers["Location"]
    assert landed.startswith(CALLBACK)
    assert "error=login_required" in landed
    assert open_authorization(browser, service, client).url == service.url + SECURITY


@pytest.mark.long
@pytest.mark.parametrize("factor", [give_app, give_passkey])
def test_a_user_with_a_second_factor_sees_no_notice(
    start: Start, factor: Callable[[LiveGatebell, Person], object]
) -> None:
    service = start("everybody")
    person = make_user(service)
    factor(service, person)
    browser = open_browser(service, person)
    assert opened(service, browser, PROFILE) == PROFILE
    assert "requires two-factor" not in browser.get(service.url + PROFILE).text


@pytest.mark.long
def test_a_new_app_gives_access_to_all_pages_immediately(start: Start) -> None:
    service = start("everybody")
    person = make_user(service)
    browser = open_browser(service, person)
    page = browser.get(f"{service.url}{SECURITY}/authenticator")
    form = form_with(page, "code")
    wrong = submit(browser, page, form, current_password=person.password, code="000000")
    assert wrong.status_code == 422
    assert opened(service, browser, PROFILE) == SECURITY
    give_app(service, person)
    assert opened(service, browser, PROFILE) == PROFILE


@pytest.mark.long
@pytest.mark.parametrize("lacks", ["second factor", "password of their own", "both"])
def test_the_user_returns_to_the_application_after_the_set_up(start: Start, lacks: str) -> None:
    service = start("nobody" if lacks == "password of their own" else "everybody")
    person = make_user(service)
    client = make_application(service, person)
    browser = service.http()
    page = open_authorization(browser, service, client, state="kept")
    if lacks != "second factor":
        give_made_password(service, person)
    page, password = sign_in_on(browser, page, person), person.password
    assert page.url == service.url + SECURITY
    if lacks != "second factor":
        old, password = password, "kettle orbit lantern velvet"
        typed = {"new_password": password, "repeat_password": password}
        form = form_with(page, "new_password")
        answer = submit(browser, page, form, current_password=old, **typed)
        page = open_and_follow(browser, urljoin(page.url, answer.headers["Location"]))
    if lacks != "password of their own":
        assert page.url == service.url + SECURITY
        _, answer = set_up(service, browser, password)
        codes = browser.get(urljoin(page.url, answer.headers["Location"]))
        (onward,) = re.findall(r'href="([^"]*)">I have saved my codes', codes.text)
        page = open_and_follow(browser, urljoin(page.url, unescape(onward)))
    assert parse_redirect(submit_decision(browser, page))["state"] == "kept"


@pytest.mark.long
def test_a_second_factor_can_be_required_of_administrators_only(start: Start) -> None:
    service = start("administrators")
    person, administrator = make_user(service), make_user(service, admin=True)
    assert opened(service, open_browser(service, person), PROFILE) == PROFILE
    assert token_for_password(service, person).status_code == 200
    assert opened(service, open_browser(service, administrator), "/admin") == SECURITY
    assert token_for_password(service, administrator).json()["error"] == "invalid_grant"


@pytest.mark.long
def test_users_see_a_notice_before_the_requirement_starts(start: Start) -> None:
    begins = day(3)
    service = start("everybody", begins)
    person = make_user(service)
    browser = open_browser(service, person)
    page = browser.get(service.url + PROFILE)
    shown = date.fromisoformat(begins)
    assert f"Starting {shown.day} {shown:%b %Y}, this instance requires two-factor" in words(page)
    assert token_for_password(service, person).status_code == 200
    give_app(service, person)
    assert begins not in browser.get(service.url + PROFILE).text
    assert begins not in service.http().get(f"{service.url}/users/sign_in").text


def test_the_requirement_applies_from_its_date(start: Start) -> None:
    for begins in (day(0), day(-400)):
        service = start("everybody", begins)
        browser = open_browser(service, make_user(service))
        assert opened(service, browser, PROFILE) == SECURITY


def test_existing_tokens_stay_valid(start: Start) -> None:
    service = start("everybody")
    headers = {"PRIVATE-TOKEN": make_token(service, make_user(service)).clear}
    assert service.http().get(f"{service.url}/api/v4/user", headers=headers).status_code == 200


def test_a_user_whose_factors_were_removed_can_set_up_a_new_one(start: Start) -> None:
    service = start("administrators")
    administrator = make_user(service, admin=True)
    give_app(service, administrator)
    browser = open_browser(service, administrator)
    assert opened(service, browser, PROFILE) == PROFILE
    service.cli("users", "remove-second-factors", administrator.username)
    browser = open_browser(service, administrator)
    assert opened(service, browser, PROFILE) == SECURITY
    assert opened(service, browser, f"{SECURITY}/authenticator") == f"{SECURITY}/authenticator"


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("wrong", ["tomorrow", "2027-02-30", "01/02/2027"])
def test_an_invalid_date_is_rejected_with_an_example(start: Start, wrong: str) -> None:
    service = start("everybody")
    done = service.run_cli("settings", "set", "second_factor_required_from", wrong)
    assert done.returncode != 0
    assert "a date such as 2027-01-31" in done.stdout + done.stderr


@pytest.mark.long
def test_a_provider_sign_in_needs_a_second_factor_unless_the_provider_is_trusted(
    start: Start, provider: FakeProvider
) -> None:
    service = start("everybody")
    trusted = add_provider(service, provider.url, "--creates-accounts", "--trusts-second-factor")
    other, browser = add_provider(service, provider.url, "--creates-accounts"), service.http()
    for slug, methods, leads_to in (
        (trusted, ["pwd", "otp"], PROFILE),
        (trusted, ["pwd"], SECURITY),
        (other, ["pwd", "otp"], SECURITY),
    ):
        provider.is_about(amr=methods)
        browser = service.http()
        assert_signed_in(sign_in_through(service, provider, slug, browser))
        assert opened(service, browser, PROFILE) == leads_to
    # A recent sign-in is enough to set up a factor if there is no password.
    page = browser.get(f"{service.url}{SECURITY}/authenticator")
    form = form_with(page, "code")
    assert not form.has("current_password")
    assert "expired" not in submit(browser, page, form, code="000000").text
    again = browser.get(f"{service.url}/users/sign_in?again=yes", allow_redirects=False)
    assert again.status_code == 200


# Groups that require a second factor


def must_set_up(service: LiveGatebell, person: Person) -> bool:
    return opened(service, open_browser(service, person)) == SECURITY


def group_url(path: str) -> str:
    return f"/groups/{path.replace('/', '%2F')}"


def require(service: LiveGatebell, owner: Person, group: str, **more: Any) -> requests.Response:
    body = {"require_two_factor_authentication": True, "two_factor_grace_period": 0, **more}
    give_app(service, owner)  # The owner needs a factor to continue.
    answer = script_of(service, owner).send_request("PUT", group_url(group), json=body)
    assert answer.status_code == 200, answer.text
    return answer


def make_group(service: LiveGatebell, owner: Person, above: str) -> str:
    """Create a subgroup, and return its full path."""
    script = script_of(service, owner)
    parent_id = script.send_request("GET", group_url(above)).json()["id"]
    made = script.send_request("POST", "/groups", json={"path": "inner", "parent_id": parent_id})
    assert made.status_code == 201, made.text
    return str(made.json()["full_path"])


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="olivia")


@pytest.fixture
def project(gatebell: LiveGatebell, owner: Person) -> str:
    """A project in a group of the owner."""
    return make_project(gatebell, owner)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_member_without_a_second_factor_can_only_set_one_up(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    give_role(gatebell, group, member, Role.GUEST)
    browser = open_browser(gatebell, member)
    assert opened(gatebell, browser) == PROFILE
    shown = require(gatebell, owner, group).json()
    assert shown["require_two_factor_authentication"] is True
    assert shown["two_factor_grace_period"] == 0
    assert script_of(gatebell, owner).send_request("GET", group_url(group)).json() == shown

    for path in ("/", PROFILE, f"/{project}", "/help"):
        assert opened(gatebell, browser, path) == SECURITY, path
    page = browser.get(gatebell.url + SECURITY)
    assert f"The group {group} requires two-factor authentication." in words(page)
    client = make_application(gatebell, owner)
    assert open_authorization(browser, gatebell, client).url == gatebell.url + SECURITY
    silent = open_authorization(browser, gatebell, client, prompt="none").headers["Location"]
    assert silent.startswith(CALLBACK)
    assert "error=login_required" in silent
    assert token_for_password(gatebell, member).json()["error"] == "invalid_grant"
    token = {"PRIVATE-TOKEN": make_token(gatebell, member).clear}
    assert requests.get(f"{gatebell.url}/api/v4/user", headers=token, timeout=30).ok

    give_app(gatebell, member)
    assert opened(gatebell, browser) == PROFILE


@pytest.mark.both_databases
@pytest.mark.parametrize("place", ["project", "subgroup", "below", "above"])
def test_a_group_requirement_applies_to_members_of_subgroups_projects_and_parent_groups(
    gatebell: LiveGatebell, owner: Person, project: str, place: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    inner = make_group(gatebell, owner, group)
    below = make_group(gatebell, owner, inner)
    where = {"project": project, "subgroup": inner, "below": below, "above": group}[place]
    give_role(gatebell, where, member, Role.DEVELOPER)
    require(gatebell, owner, inner if place == "above" else group)
    assert must_set_up(gatebell, member)
    take_role(gatebell, where, member)
    assert not must_set_up(gatebell, member)


@pytest.mark.long
def test_a_group_requirement_does_not_apply_to_other_users(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group = project.rpartition("/")[0]
    require(gatebell, owner, make_group(gatebell, owner, group))
    stranger, neighbor, like = (make_user(gatebell) for _ in range(3))
    give_role(gatebell, make_project(gatebell, owner), neighbor, Role.OWNER)
    # The project is in the parent group, next to the subgroup.
    give_role(gatebell, project, like, Role.OWNER)
    assert not any(must_set_up(gatebell, each) for each in (stranger, neighbor, like))


def test_an_underscore_in_a_group_path_is_not_a_wildcard(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, other = project.rpartition("/")[0], make_project(gatebell, owner)
    member = make_user(gatebell)
    give_role(gatebell, other, member, Role.OWNER)
    wild = other.rpartition("/")[0].replace("-", "_")
    with database_of(gatebell) as session:
        session.query(Group).filter_by(path=group).one().path = wild
    require(gatebell, owner, wild)
    assert not must_set_up(gatebell, member)


@pytest.mark.long
@pytest.mark.parametrize("factor", [give_app, give_passkey])
def test_a_member_with_a_second_factor_sees_no_notice(
    gatebell: LiveGatebell, owner: Person, project: str, factor: Any
) -> None:
    member = make_user(gatebell)
    give_role(gatebell, project, member, Role.DEVELOPER)
    factor(gatebell, member)
    require(gatebell, owner, project.rpartition("/")[0], two_factor_grace_period=24)
    browser = open_browser(gatebell, member)
    assert opened(gatebell, browser) == PROFILE
    assert "requires two-factor" not in browser.get(gatebell.url + PROFILE).text


@pytest.mark.long
@pytest.mark.both_databases
def test_the_grace_period_starts_with_the_rule_or_the_membership(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, old, new = project.rpartition("/")[0], make_user(gatebell), make_user(gatebell)
    give_role(gatebell, project, old, Role.DEVELOPER)
    require(gatebell, owner, group, two_factor_grace_period=24)
    page = open_browser(gatebell, old).get(gatebell.url + PROFILE)
    assert f"the group {group} requires two-factor authentication. Set it up" in words(page)
    begins = now() + timedelta(hours=24)
    assert f"Starting {begins:%Y-%m-%d}" in words(page)
    assert token_for_password(gatebell, old).status_code == 200

    past, old_id = now() - timedelta(hours=25), find_user_id(gatebell, old)
    with database_of(gatebell) as session:
        session.execute(
            update(Group).where(Group.path == group).values(two_factor_required_at=past)
        )
        session.execute(
            update(Member)
            .where(Member.user_id == old_id)
            .values(created_at=past - timedelta(days=9))
        )
    give_role(gatebell, project, new, Role.DEVELOPER)
    assert must_set_up(gatebell, old)
    assert not must_set_up(gatebell, new), "whoever joins has the same time"
    script = script_of(gatebell, owner)
    longer = script.send_request("PUT", group_url(group), json={"two_factor_grace_period": 30})
    assert longer.json()["two_factor_grace_period"] == 30
    assert not must_set_up(gatebell, old)
    again = {"require_two_factor_authentication": True, "two_factor_grace_period": 24}
    script.send_request("PUT", group_url(group), json=again)
    assert must_set_up(gatebell, old), "what is required already does not begin anew"


@pytest.mark.parametrize("end", ["off", "deleted", "membership"])
def test_the_requirement_ends_with_the_rule_the_group_or_the_membership(
    gatebell: LiveGatebell, owner: Person, project: str, end: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    give_role(gatebell, project, member, Role.DEVELOPER)
    require(gatebell, owner, group)
    assert must_set_up(gatebell, member)
    if end == "off":
        body = {"require_two_factor_authentication": False}
        assert script_of(gatebell, owner).send_request("PUT", group_url(group), json=body).ok
    elif end == "deleted":
        assert (
            script_of(gatebell, owner).send_request("DELETE", group_url(group)).status_code == 202
        )
    else:
        mine = update(Member).where(Member.user_id == find_user_id(gatebell, member))
        with database_of(gatebell) as session:
            session.execute(mine.values(expires_at=now().date()))
    assert not must_set_up(gatebell, member)


def test_a_deleted_subgroup_requires_nothing_of_members_of_its_parent(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    inner = make_group(gatebell, owner, group)
    give_role(gatebell, group, member, Role.DEVELOPER)
    require(gatebell, owner, inner)
    assert must_set_up(gatebell, member)
    assert script_of(gatebell, owner).send_request("DELETE", group_url(inner)).status_code == 202
    assert not must_set_up(gatebell, member)


@pytest.mark.long
def test_owners_can_change_the_requirement_on_the_page(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, maintainer = project.rpartition("/")[0], make_user(gatebell)
    give_role(gatebell, group, maintainer, Role.MAINTAINER)
    path = f"{gatebell.url}/groups/{group}/-/settings"
    assert open_browser(gatebell, maintainer).get(path).status_code == 403
    browser = open_browser(gatebell, owner)
    page = browser.get(path)
    form = form_with(page, "two_factor_grace_period")
    assert form.value("two_factor_grace_period") == "48"
    for wrong in ("", "-1", "9000", "soon"):
        answer = submit(browser, page, form, two_factor_grace_period=wrong)
        assert answer.status_code == 422, wrong
    values = {"require_two_factor_authentication": "y", "two_factor_grace_period": "72"}
    assert submit(browser, page, form, **values).status_code == 302
    page = browser.get(path)
    assert "Settings saved." in words(page)
    form = form_with(page, "two_factor_grace_period")
    assert form.value("two_factor_grace_period") == "72"
    assert form.value("require_two_factor_authentication") == "y"
    submit(browser, page, form)
    assert "Nothing was changed." in words(browser.get(path))
    changed = list_events_with_subject(gatebell, group)[0].details
    assert changed["require_two_factor_authentication"] == "true"
    assert changed["two_factor_grace_period"] == "72"
    submit(browser, page, form, require_two_factor_authentication=None)
    shown = script_of(gatebell, owner).send_request("GET", group_url(group)).json()
    assert shown["require_two_factor_authentication"] is False


def test_an_invalid_rule_is_rejected(gatebell: LiveGatebell, owner: Person, project: str) -> None:
    group = project.rpartition("/")[0]
    for name, value in (
        *(("two_factor_grace_period", wrong) for wrong in (-1, 10**12, "soon")),
        ("require_two_factor_authentication", "perhaps"),
    ):
        answer = script_of(gatebell, owner).send_request(
            "PUT", group_url(group), json={name: value}
        )
        assert (answer.status_code, name in answer.text) == (400, True), value
    member = make_user(gatebell)
    give_role(gatebell, group, member, Role.MAINTAINER)
    rule = {"require_two_factor_authentication": True}
    answer = script_of(gatebell, member).send_request("PUT", group_url(group), json=rule)
    assert answer.status_code == 403
