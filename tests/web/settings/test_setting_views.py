"""Tests of descriptions of settings: titles, values, sources and risks."""

from dataclasses import fields, replace

import pytest

from web.admin.security_warnings import list_security_warnings
from web.admin.settings import SettingView, ValueSource, format_setting_title, list_section_views
from web.settings.environment import Settings
from web.settings.sections import list_sections

pytestmark = pytest.mark.one_database("sqlite")


def view(settings: Settings, name: str, **stored: str) -> SettingView:
    return next(
        each
        for section in list_section_views(settings, stored)
        for each in section.settings
        if each.name == name
    )


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("id_token_lifetime_seconds", "ID token lifetime"),
        ("oauth2_device_grant_flow", "OAuth device grant flow"),
        ("require_https_redirect_uris", "Require HTTPS redirect URIs"),
        ("tier", "Tier"),
    ],
)
def test_a_title_is_made_from_the_name(name: str, title: str) -> None:
    assert format_setting_title(name) == title


def test_every_setting_is_in_exactly_one_section(settings: Settings) -> None:
    names = [each.name for section in list_sections() for each in section.settings]
    assert sorted(names) == sorted(each.name for each in fields(Settings))
    shown = [each.name for section in list_section_views(settings, {}) for each in section.settings]
    assert sorted(shown) == sorted(names)
    assert all(section.title for section in list_sections())


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("access_token_lifetime_seconds", "7200", "7,200 seconds (2 hours)"),
        ("access_token_lifetime_seconds", "7201", "7,201 seconds"),
        ("access_token_lifetime_seconds", "1", "1 second"),
        ("alert_body_limit_bytes", "2048", "2,048 bytes (2.0 KiB)"),
        ("page_size", "50", "50"),
        ("alert_rate_limit", "off", "None"),
        ("oauth2_device_grant_flow", "off", "Off"),
        ("tier", "FREE", "free"),
    ],
)
def test_a_value_is_described_in_words(
    settings: Settings, name: str, text: str, words: str
) -> None:
    shown = view(settings, name, **{name: text})
    assert shown.words == words
    assert shown.source is ValueSource.CHANGED_HERE


def test_an_invalid_stored_value_is_ignored(settings: Settings) -> None:
    shown = view(settings, "page_size", page_size="many")
    assert (shown.text, shown.has_stored_value) == (str(settings.page_size), False)


def test_the_source_distinguishes_the_environment_from_the_default(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    monkeypatch.setenv("METRICS_TOKEN_FILE", "/run/secrets/metrics")
    monkeypatch.setenv("LOG_FORMAT", "")
    origins = {
        name: view(settings, name).source for name in ("log_level", "metrics_token", "log_format")
    }
    assert origins == {
        "log_level": ValueSource.ENVIRONMENT,
        "metrics_token": ValueSource.ENVIRONMENT,
        "log_format": ValueSource.DEFAULT,
    }


def test_a_secret_is_only_shown_as_set(settings: Settings) -> None:
    for name in ("secret_key", "database_url"):
        shown = view(settings, name)
        assert (shown.words, shown.text) == ("Set", "")
        assert getattr(settings, name) not in repr(shown)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://", "memory://"),
        ("redis://:a-password@one:6379/0", "redis://one:6379/0"),
        ("redis://one:6379/0?password=a-password", "redis://one:6379/0"),
        ("redis+cluster://u:a-password@one:1,two:2", "redis+cluster://one:1,two:2"),
    ],
)
def test_the_rate_limit_store_is_shown_without_its_password(
    settings: Settings, url: str, shown: str
) -> None:
    found = view(replace(settings, ratelimit_storage_uri=url), "ratelimit_storage_uri")
    assert (found.words, found.text) == (shown, shown)
    assert "a-password" not in repr(replace(settings, ratelimit_storage_uri=url))


def test_the_outgoing_proxy_is_shown_without_its_password(settings: Settings) -> None:
    proxy = "http://user:a-password@proxy.internal:3128"
    shown = view(replace(settings, outgoing_proxy=proxy), "outgoing_proxy")
    assert shown.text == "http://proxy.internal:3128"
    assert view(settings, "outgoing_proxy").words == "Not set"


@pytest.mark.parametrize(
    ("changes", "risk"),
    [
        ({"base_url": "http://bell.example"}, "base_url"),
        ({"database_url": "postgresql+psycopg:///x?host=127.0.0.1,db.example"}, "database_url"),
        ({"access_token_lifetime_seconds": 86_401}, "access_token_lifetime_seconds"),
        ({"personal_access_token_lifetime_days": 3_650}, "personal_access_token_lifetime_days"),
        ({"release": "15.11"}, "release"),
        ({"password_min_length": 8}, "password_min_length"),
        ({"api_rate_limit": ""}, "api_rate_limit"),
        ({"oauth_rate_limit": ""}, "oauth_rate_limit"),
        ({"log_level": "DEBUG"}, "log_level"),
        ({"database_url": "postgresql+psycopg://db.example/x?sslmode=require"}, "database_url"),
        ({"ratelimit_storage_uri": "redis://:secret@store.example"}, "ratelimit_storage_uri"),
        ({"metrics_networks": "0.0.0.0/0"}, "metrics_networks"),
    ],
)
def test_an_insecure_setting_causes_a_warning(
    settings: Settings, changes: dict[str, object], risk: str
) -> None:
    safe = replace(settings, base_url="http://127.0.0.1:8000")
    assert list(list_security_warnings(safe)) == []
    found = [each.setting for each in list_security_warnings(replace(safe, **changes))]  # type: ignore[arg-type]
    assert risk in found


@pytest.mark.spec("L6")
@pytest.mark.parametrize(
    "changes",
    [
        {"database_url": "postgresql+psycopg://db.example/x?sslmode=verify-full"},
        {"database_url": "postgresql+psycopg://127.0.0.1/x"},
        {"database_url": "postgresql+psycopg:///x?host=/run/postgresql"},
        {"ratelimit_storage_uri": "rediss://:secret@store.example"},
        {"ratelimit_storage_uri": "redis://localhost"},
    ],
    ids=lambda changes: next(iter(changes.values())),
)
def test_encrypted_or_local_connections_cause_no_warning(
    settings: Settings, changes: dict[str, str]
) -> None:
    safe = replace(settings, base_url="http://127.0.0.1:8000")
    assert list(list_security_warnings(replace(safe, **changes))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000"])
def test_http_on_localhost_causes_no_warning(settings: Settings, host: str) -> None:
    local = replace(settings, base_url=f"http://{host}")
    assert [each.setting for each in list_security_warnings(local)] == []


def test_processes_with_shared_rate_limits_cause_no_warning(settings: Settings) -> None:
    several = replace(settings, web_concurrency=2, ratelimit_storage_uri="memory://")
    assert list(list_security_warnings(several)) == []
