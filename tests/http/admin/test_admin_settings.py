"""Tests of `/admin/settings`: all settings with their values, and changes of settings."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from time import monotonic, sleep
from urllib.parse import urlencode

import pytest
import requests

from tests.support.accounts.administration import (
    find_last_event,
    forget_settings,
    get_administrator_browser,
    get_shared_administrator,
    read_redirected_page,
    read_stored_settings,
    store_setting,
    submit_form_by_ending,
    submit_form_by_field,
)
from tests.support.accounts.people import settings_of
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with
from web.admin.settings import format_setting_title
from web.pages.templating import format_code_spans
from web.settings.sections import list_sections

pytestmark = pytest.mark.one_database("sqlite")

PAGES = "/admin/settings"
TOKENS = f"{PAGES}/applications-and-tokens"
ADDRESS = f"{PAGES}/address"
DATES = f"{PAGES}/interfaces-and-records"
FLAGS = f"{PAGES}/feature-flags"
#: All processes notice a change within a second, but a busy machine can be slower.
A_WHILE = 5


@pytest.fixture(autouse=True)
def reset_settings(gatebell: LiveGatebell) -> Iterator[None]:
    """Reset the settings of the shared service before and after each test."""
    forget_settings(gatebell)
    yield
    forget_settings(gatebell)


def page_of(gatebell: LiveGatebell, path: str = PAGES) -> str:
    return get_administrator_browser(gatebell).get(gatebell.url + path).text


def row_of(page: str, title: str) -> str:
    """Return the table row of a setting, or an empty string if it is not shown."""
    rows: list[str] = re.findall(r'<tr role="row">.*?</tr>', page, re.DOTALL)
    heading = re.compile(rf'rowheader">(<a [^>]*>)?{re.escape(title)}')
    return next((row for row in rows if heading.search(row)), "")


def has_device_flow(gatebell: LiveGatebell) -> bool:
    address = f"{gatebell.url}/.well-known/oauth-authorization-server"
    return "device_authorization_endpoint" in requests.get(address, timeout=30).json()


def test_every_setting_is_shown_with_its_description_and_without_secrets(
    gatebell: LiveGatebell,
) -> None:
    page = page_of(gatebell)
    for section in list_sections():
        for setting in section.settings:
            assert row_of(unescape(page), format_setting_title(setting.name))
            assert str(format_code_spans(setting.metadata["about"].doc)) in page
    # Names have their usual spelling, and ports have no commas.
    assert re.search(r">[0-9]{5}<", row_of(page, "Port"))
    for title in ("TLS certificate", "TLS key", "Trusted CA file"):
        assert row_of(page, title)
    assert ">1,048,576 bytes (1.0 MiB)<" in page
    assert settings_of(gatebell).secret_key not in page
    assert gatebell.database_url not in unescape(page)
    assert ">Set<" in row_of(page, "Secret key")
    assert ">Not set<" in row_of(page, "Metrics token")


def test_the_source_of_each_value_is_shown(gatebell: LiveGatebell) -> None:
    store_setting(gatebell, "page_size", "21")
    page = page_of(gatebell)
    assert "Environment" in row_of(page, "Port")
    assert "Default" in row_of(page, "Web concurrency")
    assert "Changed here" in row_of(page, "Page size")
    assert ">21<" in row_of(page, "Page size")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_change_reaches_every_process_within_a_second(gatebell: LiveGatebell) -> None:
    assert has_device_flow(gatebell)
    answer = submit_form_by_field(
        gatebell, FLAGS, "oauth2_device_grant_flow", oauth2_device_grant_flow=None
    )
    assert "Saved: OAuth device grant flow." in read_redirected_page(gatebell, answer)
    deadline = monotonic() + A_WHILE
    while has_device_flow(gatebell) and monotonic() < deadline:
        sleep(0.1)
    sleep(1.2)  # The other process may not have answered any of these requests.

    with ThreadPoolExecutor(8) as several:
        found = set(several.map(lambda _: has_device_flow(gatebell), range(60)))

    assert found == {False}


@pytest.mark.both_databases
def test_only_changed_settings_are_stored(gatebell: LiveGatebell) -> None:
    page = get_administrator_browser(gatebell).get(gatebell.url + TOKENS)
    form = form_with(page, "refresh_replay_seconds")
    # In the meantime, another setting of the page is changed.
    store_setting(gatebell, "id_token_lifetime_seconds", "1800")
    sent = form.filled(refresh_replay_seconds="30")
    answer = get_administrator_browser(gatebell).post(
        gatebell.url + TOKENS, data=sent, allow_redirects=False
    )
    assert "Saved: Refresh replay." in read_redirected_page(gatebell, answer)
    assert read_stored_settings(gatebell) == {
        "id_token_lifetime_seconds": "1800",
        "refresh_replay_seconds": "30",
    }


MISTAKES = (
    (TOKENS, "access_token_lifetime_seconds", "0", "must be a whole number of seconds from 1"),
    (TOKENS, "access_token_lifetime_seconds", "soon", "must be a whole number"),
    (TOKENS, "access_token_lifetime_seconds", "1e3", "must be a whole number"),
    (TOKENS, "access_token_lifetime_seconds", "٣", "must be a whole number"),
    (TOKENS, "access_token_lifetime_seconds", "9" * 30, "must be a whole number"),
    (TOKENS, "access_token_lifetime_seconds", "", "Access token lifetime must be a whole"),
    (ADDRESS, "instance_name", "", "Instance name must be one line"),
    (ADDRESS, "instance_name", "x" * 61, "must be one line of at most 60 characters"),
    (ADDRESS, "instance_name", "nul\0", "must be one line"),
    (f"{PAGES}/alerts", "alert_rate_limit", "often", "must be empty or off for no limit"),
    (f"{PAGES}/alerts", "alert_rate_limit", "x" * 1001, "at most 1000 characters"),
    (f"{PAGES}/interfaces-and-records", "tier", "gold", "Not a valid choice"),
    (f"{PAGES}/interfaces-and-records", "release", "newest", "must be a release such as"),
)


@pytest.mark.long
def test_an_invalid_value_is_explained_and_the_input_is_kept(gatebell: LiveGatebell) -> None:
    for path, name, text, sentence in MISTAKES:
        page = submit_form_by_field(gatebell, path, name, **{name: text})
        assert page.status_code == 422, (name, text)
        assert sentence in unescape(page.text), (name, text)
        if name != "tier" and "\0" not in text:
            assert form_with(page, name).value(name) == text
    assert read_stored_settings(gatebell) == {}


def test_an_invalid_field_prevents_saving_and_keeps_the_valid_fields(
    gatebell: LiveGatebell,
) -> None:
    page = submit_form_by_field(
        gatebell, TOKENS, "device_poll_interval_seconds",
        device_poll_interval_seconds="7", refresh_replay_seconds="61",
    )  # fmt: skip
    assert page.status_code == 422
    assert (
        form_with(page, "device_poll_interval_seconds").value("device_poll_interval_seconds") == "7"
    )
    assert read_stored_settings(gatebell) == {}


def test_a_limit_can_be_removed(gatebell: LiveGatebell) -> None:
    path = f"{PAGES}/rate-limits"
    read_redirected_page(
        gatebell, submit_form_by_field(gatebell, path, "api_rate_limit", api_rate_limit="")
    )
    assert read_stored_settings(gatebell) == {"api_rate_limit": ""}
    assert ">None<" in row_of(page_of(gatebell), "API rate limit")


DAYS = {"release_dates-17.0": "2024-05-16", "release_dates-18.0": "2025-05-15"}


def days_on(page: requests.Response) -> dict[str, str]:
    names = ["release_dates-16.0", *DAYS, "release_dates-18.4"]
    found = form_with(page, "release_dates-17.0")
    return {name: day for name in names if found.has(name) and (day := found.value(name))}


def test_each_release_has_a_date_field(gatebell: LiveGatebell) -> None:
    read_redirected_page(
        gatebell, submit_form_by_field(gatebell, DATES, "release_dates-17.0", **DAYS)
    )
    assert read_stored_settings(gatebell)["release_dates"] == "17.0=2024-05-16\n18.0=2025-05-15"
    assert days_on(get_administrator_browser(gatebell).get(gatebell.url + DATES)) == DAYS
    answer = submit_form_by_field(gatebell, DATES, "release_dates-17.0")
    assert "No changes." in read_redirected_page(gatebell, answer)
    answer = submit_form_by_field(gatebell, DATES, "release_dates-17.0", **dict.fromkeys(DAYS, ""))
    assert "Saved: Release dates." in read_redirected_page(gatebell, answer)
    assert read_stored_settings(gatebell)["release_dates"] == ""


def test_the_date_of_a_release_that_is_not_on_the_schedule_is_kept(gatebell: LiveGatebell) -> None:
    store_setting(gatebell, "release_dates", "18.4=2025-09-18")
    read_redirected_page(
        gatebell, submit_form_by_field(gatebell, DATES, "release_dates-17.0", **DAYS)
    )
    given = DAYS | {"release_dates-18.4": "2025-09-18"}
    assert days_on(get_administrator_browser(gatebell).get(gatebell.url + DATES)) == given


def test_an_invalid_date_is_explained_and_the_input_is_kept(gatebell: LiveGatebell) -> None:
    for day, sentence in (
        ("soon", "'17.0=soon' must be a release and its date, such as 18.0=2027-05-20."),
        (
            "2024-02-30",
            "'17.0=2024-02-30' must be a release and its date, such as 18.0=2027-05-20.",
        ),
        ("2025-05-16", "18.0 (2025-05-15) is before 17.0 (2025-05-16)."),
    ):
        wrong = DAYS | {"release_dates-17.0": day}
        page = submit_form_by_field(gatebell, DATES, "release_dates-17.0", **wrong)
        assert page.status_code == 422
        assert "Release dates must be releases with their dates, such as" in unescape(page.text)
        assert sentence in unescape(page.text)
        assert days_on(page) == wrong
    assert read_stored_settings(gatebell) == {}


def test_a_date_for_a_release_that_is_not_on_the_schedule_is_rejected(
    gatebell: LiveGatebell,
) -> None:
    for release in ("19.4", "<b>"):
        given = DAYS | {f"release_dates-{release}": "2027-05-20"}
        page = submit_form_by_field(gatebell, DATES, "release_dates-17.0", **given)
        assert page.status_code == 422
        said = f"Release {release} is not on the release schedule. To set its date, use"
        assert said in unescape(page.text)
        assert "<b>" not in page.text
        assert days_on(page) == DAYS
        assert read_stored_settings(gatebell) == {}
    given = DAYS | {"release_dates-<b>": ""}
    read_redirected_page(
        gatebell, submit_form_by_field(gatebell, DATES, "release_dates-17.0", **given)
    )


def test_a_setting_can_be_reset_to_its_initial_value(gatebell: LiveGatebell) -> None:
    store_setting(gatebell, "refresh_replay_seconds", "30")
    assert "otherwise: 10 seconds" in page_of(gatebell, TOKENS)
    answer = submit_form_by_ending(gatebell, TOKENS, "/refresh_replay_seconds/reset")
    assert "Refresh replay was reset." in read_redirected_page(gatebell, answer)
    assert read_stored_settings(gatebell) == {}
    event = find_last_event(gatebell, "refresh_replay_seconds")
    assert (event.details["old"], event.details["new"]) == (30, 10)


def test_startup_settings_cannot_be_changed_or_reset(gatebell: LiveGatebell) -> None:
    token = form_with(
        get_administrator_browser(gatebell).get(gatebell.url + ADDRESS), "instance_name"
    )
    sent = {"csrf_token": token.value("csrf_token")}
    for name in ("port", "secret_key", "nothing"):
        answer = get_administrator_browser(gatebell).post(
            f"{gatebell.url}{ADDRESS}/{name}/reset", data=sent
        )
        assert answer.status_code == 404, name
    answer = submit_form_by_field(
        gatebell, ADDRESS, "instance_name", port="1", base_url="http://evil.example"
    )
    assert "No changes." in read_redirected_page(gatebell, answer)
    assert read_stored_settings(gatebell) == {}


def test_a_change_is_recorded_with_the_old_value(gatebell: LiveGatebell) -> None:
    submit_form_by_field(gatebell, ADDRESS, "instance_name", instance_name="Bell Tower")
    event = find_last_event(gatebell, "instance_name")
    assert (event.kind, event.actor_name) == (
        "setting.changed",
        get_shared_administrator(gatebell).username,
    )
    assert event.details == {"old": "Gatebell", "new": "Bell Tower"}


def test_markup_in_the_instance_name_is_escaped(gatebell: LiveGatebell) -> None:
    submit_form_by_field(gatebell, ADDRESS, "instance_name", instance_name="<b>{{7*7}}</b>")
    page = page_of(gatebell)
    assert "<b>{{7*7}}" not in page
    assert "&lt;b&gt;{{7*7}}&lt;/b&gt;" in row_of(page, "Instance name")


def test_settings_are_found_by_name_variable_and_description(gatebell: LiveGatebell) -> None:
    for search, title in (("device flow", "OAuth device grant flow"), ("PAGE_SIZE", "Page size")):
        page = page_of(gatebell, f"{PAGES}?{urlencode({'search': search})}")
        assert row_of(page, title)
        assert row_of(page, format_setting_title("secret_key")) == ""
    assert "No matching settings" in page_of(gatebell, f"{PAGES}?search=nosuchword")
    refused = get_administrator_browser(gatebell).get(f"{gatebell.url}{PAGES}?find=page")
    assert refused.status_code == 400
