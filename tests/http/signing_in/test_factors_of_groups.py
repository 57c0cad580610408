"""A second factor that a group requires of its members, at once or after a grace period."""

from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from models import Group, Member
from tests.http.api.projects.test_projects_api import path_of, script_of
from tests.support.accounts.administration import id_of
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
from tests.support.database.audit_log import events_with_subject
from tests.support.oauth.oauth_wire import ask
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.passkey_wire import give_passkey
from tests.support.signing_in.second_factors import give_app
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words

SECURITY = "/-/user_settings/security"
PROFILE = "/-/user_settings/profile"


def opened(service: LiveGatebell, browser: requests.Session, path: str = PROFILE) -> str:
    """Return where a page leads, or its own path if it is shown."""
    answer = browser.get(service.url + path, allow_redirects=False)
    return answer.headers.get("Location", path) if answer.status_code == 302 else path


def is_bound(service: LiveGatebell, person: Person) -> bool:
    return opened(service, open_browser(service, person)) == SECURITY


def group_url(path: str) -> str:
    return f"/groups/{path.replace('/', '%2F')}"


def require(service: LiveGatebell, owner: Person, group: str, **more: Any) -> requests.Response:
    body = {"require_two_factor_authentication": True, "two_factor_grace_period": 0, **more}
    give_app(service, owner)  # so that the owner can go on
    answer = script_of(service, owner).send("PUT", group_url(group), json=body)
    assert answer.status_code == 200, answer.text
    return answer


def make_group(service: LiveGatebell, owner: Person, above: str) -> str:
    """Create a subgroup, and return its full path."""
    script = script_of(service, owner)
    parent_id = script.send("GET", group_url(above)).json()["id"]
    made = script.send("POST", "/groups", json={"path": "inner", "parent_id": parent_id})
    assert made.status_code == 201, made.text
    return str(made.json()["full_path"])


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="olivia")


@pytest.fixture
def project(gatebell: LiveGatebell, owner: Person) -> str:
    """A project of the owner, in a group of the owner."""
    return make_project(gatebell, owner)


@pytest.mark.both_databases
def test_a_member_without_one_can_set_one_up_and_nothing_else(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    give_role(gatebell, group, member, Role.GUEST)
    browser = open_browser(gatebell, member)
    assert opened(gatebell, browser) == PROFILE
    shown = require(gatebell, owner, group).json()
    assert shown["require_two_factor_authentication"] is True
    assert shown["two_factor_grace_period"] == 0
    assert script_of(gatebell, owner).send("GET", group_url(group)).json() == shown

    for path in ("/", PROFILE, f"/{project}", "/help"):
        assert opened(gatebell, browser, path) == SECURITY, path
    page = browser.get(gatebell.url + SECURITY)
    assert f"The group {group} requires two-factor authentication." in words(page)
    client = make_application(gatebell, owner)
    assert ask(browser, gatebell, client).url == gatebell.url + SECURITY
    silent = ask(browser, gatebell, client, prompt="none").headers["Location"]
    assert silent.startswith(CALLBACK)
    assert "error=login_required" in silent
    form = {"grant_type": "password", "username": member.username, "password": member.password}
    answer = gatebell.http().post(f"{gatebell.url}/oauth/token", data=form)
    assert answer.json()["error"] == "invalid_grant"
    token = {"PRIVATE-TOKEN": make_token(gatebell, member).clear}
    assert requests.get(f"{gatebell.url}/api/v4/user", headers=token, timeout=30).ok

    give_app(gatebell, member)
    assert opened(gatebell, browser) == PROFILE


@pytest.mark.both_databases
@pytest.mark.parametrize("place", ["project", "subgroup", "below", "above"])
def test_members_of_what_is_below_and_above_are_concerned(
    gatebell: LiveGatebell, owner: Person, project: str, place: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    inner = make_group(gatebell, owner, group)
    below = make_group(gatebell, owner, inner)
    where = {"project": project, "subgroup": inner, "below": below, "above": group}[place]
    give_role(gatebell, where, member, Role.DEVELOPER)
    require(gatebell, owner, inner if place == "above" else group)
    assert is_bound(gatebell, member)
    take_role(gatebell, where, member)
    assert not is_bound(gatebell, member)


def test_members_elsewhere_are_not(gatebell: LiveGatebell, owner: Person, project: str) -> None:
    group = project.rpartition("/")[0]
    require(gatebell, owner, make_group(gatebell, owner, group))
    stranger, neighbour, like = (make_user(gatebell) for _ in range(3))
    give_role(gatebell, make_project(gatebell, owner), neighbour, Role.OWNER)
    give_role(gatebell, project, like, Role.OWNER)  # beside the subgroup
    assert not any(is_bound(gatebell, each) for each in (stranger, neighbour, like))


def test_an_underscore_is_no_wildcard(gatebell: LiveGatebell, owner: Person, project: str) -> None:
    group, other = project.rpartition("/")[0], make_project(gatebell, owner)
    member = make_user(gatebell)
    give_role(gatebell, other, member, Role.OWNER)
    wild = other.rpartition("/")[0].replace("-", "_")
    with database_of(gatebell) as session:
        session.query(Group).filter_by(path=group).one().path = wild
    require(gatebell, owner, wild)
    assert not is_bound(gatebell, member)


@pytest.mark.parametrize("factor", [give_app, give_passkey])
def test_whoever_has_one_notices_nothing(
    gatebell: LiveGatebell, owner: Person, project: str, factor: Any
) -> None:
    member = make_user(gatebell)
    give_role(gatebell, project, member, Role.DEVELOPER)
    factor(gatebell, member)
    require(gatebell, owner, project.rpartition("/")[0], two_factor_grace_period=24)
    browser = open_browser(gatebell, member)
    assert opened(gatebell, browser) == PROFILE
    assert "requires two-factor" not in browser.get(gatebell.url + PROFILE).text


@pytest.mark.both_databases
def test_the_grace_period_begins_with_the_rule_or_the_membership(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, old, new = project.rpartition("/")[0], make_user(gatebell), make_user(gatebell)
    give_role(gatebell, project, old, Role.DEVELOPER)
    require(gatebell, owner, group, two_factor_grace_period=24)
    page = open_browser(gatebell, old).get(gatebell.url + PROFILE)
    assert f"the group {group} requires two-factor authentication. Set it up" in words(page)
    begins = now() + timedelta(hours=24)
    assert f"From {begins:%Y-%m-%d}" in words(page)
    form = {"grant_type": "password", "username": old.username, "password": old.password}
    assert gatebell.http().post(f"{gatebell.url}/oauth/token", data=form).status_code == 200

    past, old_id = now() - timedelta(hours=25), id_of(gatebell, old)
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
    assert is_bound(gatebell, old)
    assert not is_bound(gatebell, new), "whoever joins has the same time"
    script = script_of(gatebell, owner)
    longer = script.send("PUT", group_url(group), json={"two_factor_grace_period": 30})
    assert longer.json()["two_factor_grace_period"] == 30
    assert not is_bound(gatebell, old)
    again = {"require_two_factor_authentication": True, "two_factor_grace_period": 24}
    script.send("PUT", group_url(group), json=again)
    assert is_bound(gatebell, old), "what is required already does not begin anew"


@pytest.mark.parametrize("end", ["off", "deleted", "membership"])
def test_what_ends_the_requirement(
    gatebell: LiveGatebell, owner: Person, project: str, end: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    give_role(gatebell, project, member, Role.DEVELOPER)
    require(gatebell, owner, group)
    assert is_bound(gatebell, member)
    if end == "off":
        body = {"require_two_factor_authentication": False}
        assert script_of(gatebell, owner).send("PUT", group_url(group), json=body).ok
    elif end == "deleted":
        assert script_of(gatebell, owner).send("DELETE", group_url(group)).status_code == 202
    else:
        mine = update(Member).where(Member.user_id == id_of(gatebell, member))
        with database_of(gatebell) as session:
            session.execute(mine.values(expires_at=now().date()))
    assert not is_bound(gatebell, member)


def test_a_deleted_group_requires_nothing_of_the_members_above(
    gatebell: LiveGatebell, owner: Person, project: str
) -> None:
    group, member = project.rpartition("/")[0], make_user(gatebell)
    inner = make_group(gatebell, owner, group)
    give_role(gatebell, group, member, Role.DEVELOPER)
    require(gatebell, owner, inner)
    assert is_bound(gatebell, member)
    assert script_of(gatebell, owner).send("DELETE", group_url(inner)).status_code == 202
    assert not is_bound(gatebell, member)


def test_owners_set_it_on_the_page(gatebell: LiveGatebell, owner: Person, project: str) -> None:
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
    changed = events_with_subject(gatebell, group)[0].details
    assert changed["require_two_factor_authentication"] == "true"
    assert changed["two_factor_grace_period"] == "72"
    submit(browser, page, form, require_two_factor_authentication=None)
    shown = script_of(gatebell, owner).send("GET", group_url(group)).json()
    assert shown["require_two_factor_authentication"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"two_factor_grace_period": -1},
        {"two_factor_grace_period": 10**12},
        {"two_factor_grace_period": "soon"},
        {"require_two_factor_authentication": "perhaps"},
    ],
)
def test_what_is_no_rule_is_refused(
    gatebell: LiveGatebell, owner: Person, project: str, wrong: dict[str, Any]
) -> None:
    group = project.rpartition("/")[0]
    answer = script_of(gatebell, owner).send("PUT", group_url(group), json=wrong)
    assert answer.status_code == 400
    assert next(iter(wrong)) in answer.text
    member = make_user(gatebell)
    give_role(gatebell, group, member, Role.MAINTAINER)
    rule = {"require_two_factor_authentication": True}
    answer = script_of(gatebell, member).send("PUT", group_url(group), json=rule)
    assert answer.status_code == 403
    assert path_of(project)
