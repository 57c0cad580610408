"""Checks of the pages of members, invitations, settings and images, also without scripts."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from domain.access.roles import Role
from tests.browser.doors import have_signed_in
from tests.browser.keys import press
from tests.browser.looks import NASTY, problems_at, problems_of
from tests.http.api.projects.test_invitations_api import link_to
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import Person, make_project, make_user
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token, script_of
from tests.support.accounts.team import give_role
from tests.support.registry.notifications import notify, pushed
from tests.support.service.live import LiveGatebell, NewService, running


@dataclass(frozen=True, kw_only=True)
class House:
    """A service that sends email and has a registry; both servers are unreachable."""

    service: LiveGatebell
    owner: Person
    guest: Person
    project: str
    archived: str
    repository: int

    @property
    def group(self) -> str:
        """Path of the project's group."""
        return self.project.partition("/")[0]


@pytest.fixture(scope="module")
def house(new_service: NewService) -> Iterator[House]:
    nobody = {"MAIL_URL": "smtp://127.0.0.1:9", "REGISTRY_URL": "http://127.0.0.1:9"}
    with running(new_service("sqlite", only="web", **nobody)) as service:
        owner, guest = make_user(service), make_user(service, name="guest")
        project, archived = (make_project(service, owner) for _ in range(2))
        script, ref = script_of(service, owner), quote(project, safe="")
        for path in (project, project.partition("/")[0]):
            give_role(service, path, guest, Role.GUEST)
        give_role(service, project, make_user(service, name="developer"), Role.DEVELOPER)
        role = {"name": "On call " + "at night " * 20, "base_access_level": 10}
        made = (
            script_of(service, get_shared_administrator(service))
            .send_request("POST", "/member_roles", json=role)
            .json()
        )
        service.cli("members", "give-member-role", project, guest.username, str(made["id"]))
        for email in (f"{'x' * 60}@people.example", guest.email):
            wanted = {"email": email, "access_level": 30, "expires_at": "2100-01-01"}
            assert script.send_request("POST", f"/projects/{ref}/invitations", json=wanted).ok
        words = {"name": NASTY[:100], "description": NASTY}
        assert script.send_request("PUT", f"/projects/{ref}", json=words).ok
        assert script.send_request("PUT", f"/groups/{project.partition('/')[0]}", json=words).ok
        make_bot_token(script, get_namespace(service, "groups", project), name=NASTY[:100])
        script.send_request("POST", f"/projects/{quote(archived, safe='')}/archive")
        notify(service, pushed(project, "v1"), pushed(project, "x" * 120))
        listed = script.send_request("GET", f"/projects/{ref}/registry/repositories").json()
        yield House(
            service=service,
            owner=owner,
            guest=guest,
            project=project,
            archived=archived,
            repository=listed[0]["id"],
        )


def with_questions(page: Page, url: str) -> list[str]:
    """Return the problems of a page as it is, and with its first and its last confirmation open."""
    problems = problems_at(page, url)
    for number in sorted({0, page.locator("details.confirm").count() - 1}):
        page.locator("details.confirm > summary").nth(number).click()
        problems += problems_of(page)
        page.locator("details.confirm > summary").nth(number).click()
    return problems


@pytest.mark.long
def test_the_pages_of_an_owner_have_no_problems(house: House, page: Page) -> None:
    have_signed_in(page, house.service, house.owner)
    tokens = f"/groups/{house.group}/-/access_tokens"
    registry = f"/{house.project}/-/container_registry"
    paths = (
        *(f"/{house.group}", f"/{house.project}", tokens, f"{tokens}/new", registry),
        *(f"/{house.project}/-/settings/general", f"/{house.archived}/-/settings/members"),
    )
    problems = [each for path in paths for each in problems_at(page, house.service.url + path)]
    for path in (
        f"/{house.project}/-/settings/members",
        f"{registry}/{house.repository}",
        f"/{house.archived}/-/settings/general",
    ):
        problems += with_questions(page, house.service.url + path)
    assert problems == []


@pytest.mark.long
def test_the_pages_of_a_guest_have_no_problems(house: House, page: Page) -> None:
    have_signed_in(page, house.service, house.guest)
    url, link = house.service.url, link_to(house.service, house.guest.email)
    problems = with_questions(page, f"{url}/{house.project}/-/settings/members")
    problems += with_questions(page, f"{url}/groups/{house.group}/-/members")
    problems += problems_at(page, url + urlsplit(link).path)
    expect(page.get_by_role("button", name="Accept invitation")).to_be_visible()
    assert problems == []


@pytest.mark.long
def test_the_current_tab_is_visible_on_a_phone(house: House, page: Page) -> None:
    have_signed_in(page, house.service, house.owner)
    page.set_viewport_size({"width": 360, "height": 800})
    for path, name in (("", "Overview"), ("/-/settings/general", "Settings")):
        page.goto(f"{house.service.url}/{house.project}{path}")
        tabs = page.get_by_role("navigation", name="Project")
        expect(tabs.get_by_role("link", name=name)).to_be_in_viewport(ratio=0.99)
        box = tabs.bounding_box()
        assert box is not None
        assert box["height"] < 60, "the tabs are in one line"


@pytest.mark.long
def test_a_rejected_form_has_no_problems(house: House, page: Page) -> None:
    have_signed_in(page, house.service, house.owner)
    page.goto(f"{house.service.url}/{house.project}/-/settings/general")
    page.get_by_label("Name").fill("  ")
    page.get_by_label("Description").fill("Typed with care")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_label("Name")).to_be_focused()
    expect(page.get_by_label("Description")).to_have_value("Typed with care")
    assert problems_of(page) == []


@pytest.mark.long
def test_a_tag_is_not_deleted_while_the_registry_is_unavailable(
    house: House, plain_page: Page
) -> None:
    have_signed_in(plain_page, house.service, house.owner)
    url = f"{house.service.url}/{house.project}/-/container_registry/{house.repository}"
    plain_page.goto(url)
    row = plain_page.get_by_role("row").filter(has_text="v1")
    row.locator("summary").click()
    row.get_by_role("button", name="Delete tag").click()
    expect(plain_page.get_by_text("The tag v1 was not deleted.")).to_be_visible()
    expect(row).to_be_visible()


@pytest.mark.long
def test_a_role_is_changed_with_the_keyboard(house: House, page: Page) -> None:
    have_signed_in(page, house.service, house.owner)
    page.goto(f"{house.service.url}/{house.project}/-/settings/members")
    # The key is the first letter of the role.
    press(page, page.get_by_label("Role of developer"), "r")
    press(page, page.get_by_role("button", name="Change the role of developer"))
    changed = f"now has the Reporter role in {house.project}."
    expect(page.locator(".flashes")).to_contain_text(changed)


@pytest.mark.long
def test_a_role_is_changed_and_a_member_leaves_without_scripts(
    house: House, plain_page: Page
) -> None:
    goer = make_user(house.service, name="goer")
    give_role(house.service, house.project, goer, Role.REPORTER)
    have_signed_in(plain_page, house.service, house.owner)
    plain_page.goto(f"{house.service.url}/{house.project}/-/settings/members")
    plain_page.get_by_label(f"Role of {goer.username}").select_option("Developer")
    plain_page.get_by_role("button", name=f"Change the role of {goer.username}").click()
    changed = f"{goer.username} now has the Developer role in"
    expect(plain_page.locator(".flashes")).to_contain_text(changed)
    have_signed_in(plain_page, house.service, goer)
    plain_page.goto(f"{house.service.url}/{house.project}")
    plain_page.get_by_role("link", name="Members").click()
    plain_page.get_by_text(f"Leave {goer.username}").click()
    plain_page.get_by_role("button", name="Leave").click()
    expect(plain_page.get_by_text(f"You left {house.project}.")).to_be_visible()
    answer = plain_page.goto(f"{house.service.url}/{house.project}")
    assert answer is not None
    assert answer.status == 404
