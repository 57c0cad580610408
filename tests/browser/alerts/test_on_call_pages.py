"""On-call schedules in a browser: created without scripts, and read on a phone in dark mode."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from domain.access.roles import Role
from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at, problems_of
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person, make_project, make_user, now
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell


def look(page: Page, address: str, name: str) -> None:
    """Assert that a page has no problems, and save a screenshot if a folder is configured."""
    assert problems_at(page, address) == []
    keep_picture(page, name)


def keep_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("KEEP_PICTURES"):
        for scheme, width in (("dark", 360), ("light", 1280)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 800})
            page.screenshot(path=Path(folder) / f"{name}-{width}.png", full_page=True)


@pytest.fixture
def team(live_sqlite: LiveGatebell) -> tuple[str, Person, Person]:
    """A project with its owner and a developer."""
    olga, bob = make_user(live_sqlite, name="olga"), make_user(live_sqlite, name="bob")
    path = make_project(live_sqlite, olga)
    give_role(live_sqlite, path, bob, Role.DEVELOPER)
    return path, olga, bob


@pytest.mark.long
def test_a_schedule_is_created_and_changed_on_a_phone_without_scripts(
    live_sqlite: LiveGatebell, plain_page: Page, team: tuple[str, Person, Person]
) -> None:
    path, olga, bob = team
    page = plain_page
    page.set_viewport_size({"width": 360, "height": 800})
    have_signed_in(page, live_sqlite, olga)
    page.goto(f"{live_sqlite.url}/{path}")
    page.get_by_role("link", name="On-call", exact=True).click()
    page.get_by_role("link", name="Create the first schedule").click()
    page.get_by_label("Name").fill("Primary")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Create schedule").click()
    length = page.get_by_label("Length of a custom turn")
    expect(length).to_be_hidden()
    page.get_by_label("Custom length").check()
    expect(length).to_be_visible()
    page.get_by_label("Weekly").check()
    expect(page.get_by_label("Turn 1")).to_have_value(olga.username)
    page.get_by_label("Turn 1").select_option("")
    page.get_by_role("button", name="Add rotation").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose at least one user.")
    page.get_by_label("Turn 1").select_option(olga.username)
    page.get_by_label("Turn 2").select_option(bob.username)
    page.get_by_role("button", name="Add rotation").click()
    expect(page.get_by_text("Rotation added.")).to_be_visible()
    expect(page.get_by_text("No escalation policy uses this schedule yet.")).to_be_visible()
    # Before the first rotation no user could be on call, so this is no gap.
    expect(page.locator(".lanes-frame")).not_to_contain_text("Nobody")
    page.get_by_role("link", name="Add override").click()
    page.get_by_label("Who is on call").select_option(bob.username)
    year = now().year + 1
    expect(page.get_by_label("From")).not_to_have_value("")
    page.get_by_label("From").fill(f"{year}-11-23T09:00")
    page.get_by_label("Until").fill(f"{year}-11-23T08:00")
    page.get_by_role("button", name="Add override").click()
    expect(page.get_by_role("alert")).to_contain_text("The end must be after the start.")
    page.get_by_label("Until").fill(f"{year}-11-24T09:00")
    page.get_by_role("button", name="Add override").click()
    row = page.get_by_role("row").filter(has_text="override")
    expect(row).to_contain_text(f"23 Nov {year} 09:00 to")
    row.locator("summary").click()
    page.get_by_role("button", name="Remove override").click()
    expect(page.get_by_text("Override removed.")).to_be_visible()
    page.get_by_role("link", name="Swap shifts").click()
    theirs = page.get_by_label("In exchange for")
    of_bob = theirs.locator("option").filter(has_text=bob.username).first
    theirs.select_option(of_bob.get_attribute("value"))
    page.get_by_role("button", name="Swap immediately").click()
    expect(page.get_by_text("Shifts swapped.")).to_be_visible()
    expect(page.get_by_text("On call now:")).to_contain_text("On call now: Bob")
    mine = page.locator(".notice").filter(has_text="swapped shifts")
    expect(mine).to_contain_text(f"{bob.username} swapped shifts: you are on call from")
    page.get_by_role("link", name="Month", exact=True).click()
    expect(page.locator(".lanes.upright")).to_contain_text(bob.username)
    page.get_by_role("link", name="Edit Rotation 1").click()
    page.get_by_label("Handoff time").fill("10:00")
    page.get_by_role("button", name="Save rotation").click()
    # The swap follows its turns, and the page shows this before it saves.
    question = "This change affects existing swaps or overrides."
    expect(page.get_by_text(question)).to_be_visible()
    page.get_by_role("button", name="Save rotation and change these shifts").click()
    expect(page.get_by_text("Rotation saved.")).to_be_visible()
    page.get_by_role("button", name="Create calendar URL").click()
    expect(page.get_by_role("heading", name="Calendar URL")).to_be_visible()


def ask_for_swap(
    live: LiveGatebell, path: str, asking: Person, asked: Person, schedule: int
) -> None:
    """Let a user ask another user to swap their next shifts."""
    root = f"/projects/{path.replace('/', '%2F')}/on_call/schedules/{schedule}"
    call = api_caller(live, asking, root)
    shifts = call.done("GET", "/shifts")[1:-1]
    mine, theirs = (
        next(
            each
            for each in shifts
            if [duty["source"] for duty in each["on_call"]] == ["rotation"]
            and each["users"][0]["username"] == person.username
        )
        for person in (asking, asked)
    )
    swap = {
        "user": asking.username,
        "starts_at": mine["starts_at"],
        "ends_at": mine["ends_at"],
        "other_user": asked.username,
        "other_starts_at": theirs["starts_at"],
        "other_ends_at": theirs["ends_at"],
    }
    call.done("POST", "/swap_requests", json=swap, status=201)


@pytest.mark.long
def test_the_pages_of_a_schedule_have_no_problems(
    live_sqlite: LiveGatebell, page: Page, team: tuple[str, Person, Person]
) -> None:
    path, olga, bob = team
    made = live_sqlite.cli(
        *("schedules", "create", path, "--name", "Primary " + NASTY[1:80], "--time-zone", "UTC"),
        *("--rotation", f"daily {olga.username},{bob.username} 09:00 only mon-fri 08:00-20:00"),
        *("--rotation", f"weekly {bob.username} fri 18:00 only sat,sun 10:00-10:00"),
    )
    script = api_caller(live_sqlite, olga, f"/projects/{path.replace('/', '%2F')}")
    times = {"starts_at": now().isoformat(), "ends_at": (now() + timedelta(days=1)).isoformat()}
    schedules = f"/on_call/schedules/{made['id']}"
    script.done("POST", f"{schedules}/overrides", json={"user": bob.username, **times}, status=201)
    rotation = script.done("GET", schedules)["rotations"][0]["id"]
    have_signed_in(page, live_sqlite, olga)
    at = f"{live_sqlite.url}/{path}/-/on_call"
    look(page, f"{live_sqlite.url}/{path}", "project")
    look(page, at, "on-call")
    look(page, f"{live_sqlite.url}/-/on_call", "own")
    look(page, f"{live_sqlite.url}/-/on_call/cover", "cover")
    look(page, f"{at}/schedules/new", "new-schedule")
    for name in ("", "?view=month", "/edit", "/rotations/new", "/overrides/new", "/swaps/new"):
        look(page, f"{at}/schedules/{made['id']}{name}", f"schedule{name.replace('/', '-')}")
    ask_for_swap(live_sqlite, path, bob, olga, made["id"])
    look(page, f"{live_sqlite.url}/-/on_call", "own-with-request")
    look(page, live_sqlite.url, "home-with-request")
    page.goto(f"{at}/schedules/{made['id']}")
    expect(page.get_by_text("asks you to swap shifts.")).to_be_visible()
    shift = page.locator(".lanes.across a.bar").first
    look(page, f"{live_sqlite.url}{shift.get_attribute('href')}", "selected-shift")
    look(page, f"{at}/schedules/{made['id']}/rotations/{rotation}/edit", "rotation")
    page.goto(f"{at}/schedules/{made['id']}")
    page.get_by_role("button", name="Create calendar URL").click()
    expect(page.get_by_role("heading", name="Calendar URL")).to_be_visible()
    assert problems_of(page) == []
    keep_picture(page, "calendar")
