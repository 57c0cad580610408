"""The chart on the page of a schedule: bars, gaps, and what can be done with a shift."""

import re
from datetime import datetime, timedelta
from html import unescape

import pytest

from domain.access.roles import Role
from tests.support.accounts.people import Person, make_project, make_user, now, signed_in, unique
from tests.support.accounts.team import give_role
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("J1")]


def make_schedule(gatebell: LiveGatebell, rotation: str) -> tuple[str, Person, Person]:
    """Create a schedule and return the path of its page, a maintainer and a developer."""
    owner, bob = make_user(gatebell), make_user(gatebell, name="bob")
    project = make_project(gatebell, owner)
    give_role(gatebell, project, bob, Role.DEVELOPER)
    made = gatebell.cli(
        *("schedules", "create", project, "--name", unique("Primary"), "--time-zone", "UTC"),
        *("--rotation", rotation.format(owner=owner.username, bob=bob.username)),
    )
    return f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}", owner, bob


def find_link(page: str, text: str) -> str:
    """Return the address of the link with a text."""
    found = re.search(rf'<a[^>]* href="([^"]+)"[^>]*>{text}</a>', page)
    assert found, f"no link {text}"
    return unescape(found[1])


def list_bars(page: str) -> list[tuple[str, str]]:
    """Return the names and addresses of the bars across that are links."""
    (picture,) = re.findall(
        r'<svg class="lanes across".*?(?=<svg class="lanes upright")', page, re.DOTALL
    )
    found = re.findall(r'<a class="bar[^"]*" href="([^"]+)" aria-label="([^"]+)"', picture)
    return [(name, unescape(href)) for href, name in found]


def test_a_bar_leads_to_an_override_of_exactly_this_turn(gatebell: LiveGatebell) -> None:
    at, owner, bob = make_schedule(gatebell, "daily {bob},{owner} 09:00")
    browser = signed_in(gatebell, owner)
    page = browser.get(at).text
    # Two weeks begin with today: there are no bars of days that are over.
    assert f"{now():%Y-%m-%d} to {now() + timedelta(days=13):%Y-%m-%d}" in page
    name, href = next(each for each in list_bars(page)[2:] if each[0].startswith(bob.username))
    start, end = re.findall(r"\w{3} (\d+ \w{3}(?: \d{4})? \d\d:\d\d)", name)
    answer = browser.get(gatebell.url + href)
    assert "A turn of the rotation Rotation 1." in words(answer)
    chosen = answer.text
    assert 'aria-current="true"' in chosen
    form_page = browser.get(gatebell.url + find_link(chosen, "Override this turn"))
    form = form_to(form_page, "/overrides/new")
    for field, shown in (("starts_at", start), ("ends_at", end)):
        entered = datetime.fromisoformat(form.value(field))
        assert shown in (
            f"{entered.day} {entered:%b %H:%M}",
            f"{entered.day} {entered:%b %Y %H:%M}",
        )
    assert form.value("instead_of") == bob.username
    submit(browser, form_page, form, user=owner.username)
    changed = browser.get(at).text
    assert re.search(rf"{owner.username} \(override\), ... {start}", changed)
    assert "Overrides and swaps</text>" in changed


def test_a_developer_is_offered_swaps_but_no_override_of_others(gatebell: LiveGatebell) -> None:
    at, owner, bob = make_schedule(gatebell, "daily {bob},{owner} 09:00")
    browser = signed_in(gatebell, bob)
    bars = list_bars(browser.get(at).text)
    theirs = next(href for name, href in bars[2:] if name.startswith(owner.username))
    chosen = browser.get(gatebell.url + theirs).text
    assert "Override this turn" not in chosen
    swap = browser.get(gatebell.url + find_link(chosen, "Swap with this turn"))
    assert form_to(swap, "/swaps/new").value("other_shift").startswith(f"{owner.username}@")
    mine = next(href for name, href in bars[2:] if name.startswith(bob.username))
    chosen = browser.get(gatebell.url + mine).text
    assert "Override this turn" in chosen
    swap = browser.get(gatebell.url + find_link(chosen, "Swap this turn"))
    assert form_to(swap, "/swaps/new").value("shift").startswith(f"{bob.username}@")


def test_a_shift_that_starts_within_a_second_can_be_selected(gatebell: LiveGatebell) -> None:
    at, owner, _ = make_schedule(gatebell, "daily {bob} 09:00")
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{at}/overrides/new")
    form = form_to(page, "/overrides/new")
    # An override that has started starts now, which is hardly ever a whole second.
    end = f"{now() + timedelta(days=1):%Y-%m-%dT%H:%M}"
    saved = submit(browser, page, form, user=owner.username, ends_at=end)
    assert saved.status_code == 302
    shown = browser.get(at).text
    bars = [href for name, href in list_bars(shown) if name.startswith(owner.username)]
    table = re.findall(rf'<a href="([^"]+)"><bdi>{owner.username}</bdi>', shown)
    for href in (bars[0], unescape(table[0])):
        answer = browser.get(gatebell.url + href)
        assert "On call because of an override." in words(answer)


def test_a_gap_is_named_and_can_be_filled(gatebell: LiveGatebell) -> None:
    at, owner, _ = make_schedule(gatebell, "daily {bob},{owner} 09:00 only mon-fri 09:00-17:00")
    browser = signed_in(gatebell, owner)
    page = browser.get(at).text
    name, href = max(list_bars(page)[1:], key=lambda each: each[0].startswith("Nobody"))
    assert name.startswith("Nobody, ")
    answer = browser.get(gatebell.url + href)
    assert "A gap: nobody is on call." in words(answer)
    chosen = answer.text
    form = form_to(browser.get(gatebell.url + find_link(chosen, "Fill this gap")), "/overrides/new")
    assert form.value("instead_of") == ""
    # The same shifts are in a table.
    table = page[page.index("Show as table") :]
    assert "Nobody" in table[: table.index("</table>")]


def test_a_schedule_without_rotations_has_an_empty_picture(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    project = make_project(gatebell, owner)
    made = gatebell.cli("schedules", "create", project, "--name", "Empty", "--time-zone", "UTC")
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    page = signed_in(gatebell, owner).get(at).text
    assert "Add the first rotation" in page
    assert page.count('<svg class="lanes') == 2


def test_very_many_turns_are_drawn_as_one_bar_without_links(gatebell: LiveGatebell) -> None:
    at, owner, bob = make_schedule(gatebell, "every 1h {bob},{owner}")
    page = signed_in(gatebell, owner).get(f"{at}?day={now() + timedelta(days=1):%Y-%m-%d}").text
    assert page.count("<title>Many shifts, ") == 4
    assert "Lanes with many shifts show only whether somebody is on call." in page
    assert f"<bdi>{bob.username}</bdi>" in page
    assert f"turn={bob.username}" not in page
    # The table has pages, which keep the view and its day.
    browser, rows = signed_in(gatebell, owner), 'role="cell" data-label="Until"'
    first = browser.get(f"{at}?view=month&day=2030-03-01")
    assert first.text.count(rows) == 20
    last = browser.get(f"{at}?view=month&day=2030-03-01&page=38").text
    assert last.count(rows) == 4  # 31 days have 744 hours.
    assert find_link(last, "Earlier").endswith("view=month&day=2030-03-01&page=37#calendar")


def test_the_preview_of_a_new_rotation_shows_a_turn_of_each_user_and_stores_nothing(
    gatebell: LiveGatebell,
) -> None:
    owner, bob, carol = make_user(gatebell), make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, owner)
    for each in (bob, carol):
        give_role(gatebell, project, each, Role.DEVELOPER)
    made = gatebell.cli("schedules", "create", project, "--name", "New", "--time-zone", "UTC")
    at = f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}"
    browser = signed_in(gatebell, owner)
    page = browser.get(f"{at}/rotations/new")
    names: dict[str, str | list[str]] = {"unit": "hours"}
    for number, each in enumerate((owner, bob, carol)):
        names[f"users-{number}"] = each.username
    shown = submit(browser, page, form_to(page, "/rotations/new"), do="preview", **names)
    assert shown.status_code == 200
    turns = re.findall(r"<li><bdi>([^<]+)</bdi>: (.*?)</li>", shown.text)
    assert [name for name, _ in turns] == [owner.username, bob.username, carol.username]
    assert "09:00" in turns[2][1]
    assert shown.text.count('<svg class="lanes') == 2
    assert gatebell.cli("schedules", "show", project, "New")["rotations"] == []
    incomplete = {**names, "weekdays": [], "restrictions-0-start_time": "09:00"}
    wrong = submit(browser, shown, form_to(shown, "/rotations/new"), do="preview", **incomplete)
    assert wrong.status_code == 422
    assert "Choose users and times to see their turns." in wrong.text
    assert "Enter both times, or neither for whole days." in wrong.text
    assert "The next turns, without other layers" in shown.text
    long = {**names, "kind": "custom", "every": "1000", "unit": "days"}
    too_long = submit(browser, shown, form_to(shown, "/rotations/new"), do="preview", **long)
    assert "Preview The length of a turn must be between 1 and 366 days." in words(too_long)
    saved = submit(browser, shown, form_to(shown, "/rotations/new"), unit="hours")
    assert saved.status_code == 302


@pytest.mark.parametrize("turn", ["bob@yesterday", "@99991231T235959", "bob@00010101T000000"])
def test_an_impossible_selection_is_an_error(gatebell: LiveGatebell, turn: str) -> None:
    at, owner, _ = make_schedule(gatebell, "daily {owner} 09:00")
    browser = signed_in(gatebell, owner)
    assert browser.get(at, params={"turn": turn}).status_code == 400
    # A shift that no longer exists is ignored, so that old links work.
    gone = browser.get(at, params={"turn": "nobody-else@20200101T000000"})
    assert gone.status_code == 200
    assert "selected-shift" not in gone.text
