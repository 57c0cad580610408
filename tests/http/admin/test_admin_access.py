"""/admin: for administrators; to everybody else it does not exist."""

import pytest
import requests

from tests.support.administration import at_work
from tests.support.html_forms import forms_in
from tests.support.live import LiveGatebell
from tests.support.people import alice, signed_in

pytestmark = pytest.mark.one_database("sqlite")

PAGES = (
    "/admin",
    "/admin/users",
    "/admin/users?group=administrators&search=root",
    "/admin/users?group=locked",
    "/admin/users?group=bots",
    "/admin/users/1",
    "/admin/users/new",
    "/admin/applications",
    "/admin/applications?of=users",
    "/admin/applications/new",
    "/admin/settings",
    "/admin/settings/feature-flags",
    "/admin/keys",
    "/admin/audit",
)
ACTIONS = (
    "/admin/users/1/lock",
    "/admin/users/1/unlock",
    "/admin/users/1/reset_password",
    "/admin/users/1/remove_second_factors",
    "/admin/users/1/make_administrator",
    "/admin/users/1/unmake_administrator",
    "/admin/users/new",
    "/admin/applications/new",
    "/admin/applications/1/edit",
    "/admin/applications/1/renew_secret",
    "/admin/applications/1/secrets/1/end",
    "/admin/applications/1/delete",
    "/admin/settings/feature-flags",
    "/admin/settings/feature-flags/tier/reset",
    "/admin/keys/rotate",
)


@pytest.mark.parametrize("path", PAGES)
def test_an_administrator_opens_the_page(gatebell: LiveGatebell, path: str) -> None:
    page = at_work(gatebell).get(gatebell.url + path)
    assert page.status_code == 200
    assert "Administration" in page.text


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_is_asked_to(gatebell: LiveGatebell, path: str) -> None:
    answer = gatebell.http().get(gatebell.url + path, allow_redirects=False)
    assert answer.status_code == 302
    assert "/users/sign_in" in answer.headers["Location"]


@pytest.mark.parametrize("path", PAGES)
def test_to_all_others_there_is_no_such_page(gatebell: LiveGatebell, path: str) -> None:
    page = signed_in(gatebell, alice(gatebell)).get(gatebell.url + path)
    assert page.status_code == 404
    assert "Administration" not in page.text


@pytest.mark.parametrize("path", ACTIONS)
def test_to_all_others_there_is_nothing_to_press(gatebell: LiveGatebell, path: str) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = browser.post(gatebell.url + path, data={"csrf_token": csrf_token(gatebell, browser)})
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ACTIONS)
def test_nothing_happens_without_the_token_of_the_form(gatebell: LiveGatebell, path: str) -> None:
    assert at_work(gatebell).post(gatebell.url + path).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/admin/users/999999999",
        "/admin/users/99999999999999999999999",
        "/admin/users/0",
        "/admin/applications/999999999",
        "/admin/applications/999999999/edit",
        "/admin/settings/nothing",
        "/admin/settings/storage",
    ],
)
def test_what_does_not_exist_is_not_found(gatebell: LiveGatebell, path: str) -> None:
    assert at_work(gatebell).get(gatebell.url + path).status_code == 404


@pytest.mark.parametrize("page", ["users", "applications"])
@pytest.mark.parametrize("cursor", ["before=x", "after=-1", "before=99999999999999999999"])
def test_a_forged_place_in_a_list_is_refused(
    gatebell: LiveGatebell, page: str, cursor: str
) -> None:
    assert at_work(gatebell).get(f"{gatebell.url}/admin/{page}?{cursor}").status_code == 400


@pytest.mark.parametrize("page", ["users", "applications"])
@pytest.mark.parametrize("search", ["%00", "%25_%5C", "'%22--", "a" * 200, "%ED%A0%80"])
def test_a_search_may_be_anything(gatebell: LiveGatebell, page: str, search: str) -> None:
    answer = at_work(gatebell).get(f"{gatebell.url}/admin/{page}?search={search}")
    assert answer.status_code == 200


def csrf_token(gatebell: LiveGatebell, browser: requests.Session) -> str:
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    return next(form.value("csrf_token") for form in forms_in(page.text))
