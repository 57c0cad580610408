"""Tests that settings are validated, with one sentence about each error."""

import os
import stat
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy.engine import make_url

from tests.support.service.certificates import rsa_key, write_certificate
from tests.support.service.ports import free_port
from web.server.temporary_files import check_temporary_directory
from web.settings.environment import (
    Settings,
    SettingsError,
    apply_stored_settings,
    list_ignored_variables,
    parse_setting_value,
    parse_settings,
)
from web.settings.fields import get_setting_metadata
from web.settings.kinds import OWN_FIRST_SEGMENTS


def settings_with(tmp_path: Path, **variables: str) -> Settings:
    return parse_settings({"INSTANCE_PATH": str(tmp_path), **variables})


def sentence_for(tmp_path: Path, **variables: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settings_with(tmp_path, **variables)
    return str(caught.value)


def test_all_settings_are_optional(tmp_path: Path) -> None:
    settings = settings_with(tmp_path)
    assert settings.base_url == "http://127.0.0.1:8000"
    assert settings.database_url == f"sqlite:///{tmp_path}/gatebell.db"
    assert settings.uses_sqlite
    assert len(settings.secret_key) == 64


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert settings_with(tmp_path, PORT="", TIER="").port == 8000


def test_an_empty_rate_limit_means_no_limit(tmp_path: Path) -> None:
    for each in fields(Settings):
        if get_setting_metadata(each).kind.allowed.startswith("empty or off for no limit"):
            turned_off = settings_with(tmp_path, **{each.name.upper(): ""})
            assert getattr(turned_off, each.name) == "", each.name
    assert settings_with(tmp_path).client_registration_rate_limit == "20/hour"


@pytest.mark.rfc("rfc8414-2-b")
@pytest.mark.parametrize(
    ("variable", "text", "allowed"),
    [
        ("PORT", "80x", "a whole number from 1 to 65535"),
        ("PORT", "0", "a whole number from 1 to 65535"),
        ("PORT", "1_000", "a whole number from 1 to 65535"),
        ("PORT", "٨٠٨٠", "a whole number from 1 to 65535"),
        ("HOST", "not a host", "an IP address or a host name"),
        ("OUTGOING_CONTACT_HOSTS", "chat.internal", "a comma-separated list of hosts with ports"),
        ("OUTGOING_CONTACT_HOSTS", "chat.internal:0", "a comma-separated list of hosts with"),
        ("OUTGOING_CONTACT_HOSTS", "10.0.0.1:9-8", "a comma-separated list of hosts with"),
        ("OUTGOING_CONTACT_HOSTS", "10.0.0.1:80000", "a comma-separated list of hosts with"),
        ("OUTGOING_CONTACT_HOSTS", "http://chat:443", "a comma-separated list of hosts with"),
        ("OUTGOING_CONTACT_HOSTS", "fd00::1:443", "a comma-separated list of hosts with ports"),
        ("BASE_URL", "ftp://example.org", "an http or https URL"),
        ("BASE_URL", "https://user@example.org", "an http or https URL"),
        ("BASE_URL", "https://example.org/?a=b", "an http or https URL"),
        ("BASE_URL", "https://example.org:99999", "an http or https URL"),
        ("BASE_URL", "https://", "an http or https URL"),
        ("LOG_LEVEL", "LOUD", "one of DEBUG, INFO"),
        ("TIER", "gold", "one of free, premium, ultimate"),
        ("RELEASE", "18", "a release such as 18.0"),
        ("ALERT_RATE_LIMIT", "often", "empty or off for no limit, or a rate such as 600/minute"),
        ("RATELIMIT_STORAGE_URI", "paper://", "memory://"),
        ("REQUIRE_HTTPS_REDIRECT_URIS", "maybe", "true or false"),
        ("AUTHORIZATION_CODE_LIFETIME_SECONDS", "601", "a whole number of seconds from 1 to 600"),
    ],
)
def test_an_error_names_the_setting_and_the_allowed_values(
    tmp_path: Path, variable: str, text: str, allowed: str
) -> None:
    sentence = sentence_for(tmp_path, **{variable: text})
    assert sentence.startswith(f"{variable} must be {allowed}")
    # The URL of a store can contain a password.
    assert sentence.endswith(f"not {text!r}.") or variable == "RATELIMIT_STORAGE_URI"


def test_an_error_names_the_wrong_part_of_a_long_value(tmp_path: Path) -> None:
    sentence = sentence_for(tmp_path, RELEASE_DATES="17.0=2024-05-16 18.0=soon")
    assert sentence == (
        "RELEASE_DATES must be releases with their dates, such as 17.0=2024-05-16 18.0=2025-05-15. "
        "'18.0=soon' must be a release and its date, such as 18.0=2027-05-20."
    )


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("DATABASE_URL", "mysql://alice:hunter2@db/gatebell"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "postgresql://alice@one:hunter2,two/gatebell"),
        ("DATABASE_URL", "hunter2"),
        ("DATABASE_URL", "postgresql://alice:pa@hunter2@db/gatebell"),
        ("DATABASE_URL", "postgresql://alice:@hunter2@db/gatebell"),
        ("DATABASE_URL", "postgresql://alice:pa@hunter2/x?y#z@db/gatebell"),
        ("DATABASE_URL", "postgresql://alice:p@db:hunter2/gatebell"),
        ("DATABASE_URL", "postgresql://a:hunter2@db/x?ssl_min_protocol_version=TLSv1.1"),
        ("SECRET_KEY", "hunter2"),
        ("SECRET_KEY_FALLBACKS", "hunter2"),
    ],
)
@pytest.mark.advisory("CVE-2023-27524")
def test_an_error_about_a_secret_does_not_show_it(tmp_path: Path, variable: str, text: str) -> None:
    sentence = sentence_for(tmp_path, **{variable: text})
    assert sentence.startswith(f"{variable} must be ")
    assert "hunter2" not in sentence


@pytest.mark.spec("L6")
def test_tls_requires_both_files_and_an_https_base_url(tmp_path: Path) -> None:
    files = {"TLS_CERTIFICATE": "/tls/chain.pem", "TLS_KEY": "/tls/key.pem"}
    settings = settings_with(tmp_path, **files, HOST="::", PORT="8443")
    assert settings.base_url == "https://localhost:8443"
    assert settings.tls_key == Path("/tls/key.pem")
    for name, file in files.items():
        sentence = sentence_for(tmp_path, **{name: file})
        assert sentence == "TLS_CERTIFICATE and TLS_KEY must be set together."
    sentence = sentence_for(tmp_path, **files, BASE_URL="http://gate.example")
    assert sentence == "BASE_URL must begin with https: because TLS_CERTIFICATE is set."


@pytest.mark.spec("L6")
def test_a_ca_file_is_read_at_startup(tmp_path: Path) -> None:
    good = write_certificate(tmp_path / "good.pem", rsa_key(2048))
    assert settings_with(tmp_path, TRUSTED_CA_FILE=str(good)).trusted_ca_file == good
    weak, empty = write_certificate(tmp_path / "weak.pem", rsa_key(1024)), tmp_path / "empty"
    empty.touch()
    for file in (weak, empty, tmp_path / "missing", tmp_path):
        sentence = sentence_for(tmp_path, TRUSTED_CA_FILE=str(file))
        assert sentence.startswith("TRUSTED_CA_FILE must be the path of a readable PEM file")


def test_hosts_with_ports_are_normalized(tmp_path: Path) -> None:
    text = "Chat.Internal.:443,10.1.2.3:8000-8010, [FD00:0::1]:5,"
    settings = settings_with(tmp_path, OUTGOING_CONTACT_HOSTS=text)
    assert settings.outgoing_contact_hosts == "chat.internal:443, 10.1.2.3:8000-8010, [fd00::1]:5"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_scheme_of_postgres_uses_the_same_driver(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}://alice:p%40ss@db:5433/gatebell"
    settings = settings_with(tmp_path, DATABASE_URL=url, SECRET_KEY="k" * 32)
    assert settings.database_url == "postgresql+psycopg://alice:p%40ss@db:5433/gatebell"
    assert not settings.uses_sqlite


def test_a_relative_sqlite_path_is_in_the_instance_path(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, DATABASE_URL="sqlite:///other.db")
    assert settings.database_url == f"sqlite:///{tmp_path}/other.db"


def test_secrets_are_not_in_the_representation(tmp_path: Path) -> None:
    settings = settings_with(
        tmp_path,
        DATABASE_URL="postgresql://alice:hunter2@db/gatebell",
        SECRET_KEY="k" * 40,
        METRICS_TOKEN="hunter3",
    )
    shown = repr(settings)
    assert not [secret for secret in ("hunter2", "hunter3", "kkkk") if secret in shown]


def test_the_default_base_url_does_not_use_the_wildcard_address(tmp_path: Path) -> None:
    assert settings_with(tmp_path, HOST="0.0.0.0", PORT="9").base_url == "http://localhost:9"  # noqa: S104 - not bound
    assert settings_with(tmp_path, HOST="::1").base_url == "http://[::1]:8000"


def test_a_base_url_loses_its_trailing_slash(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, BASE_URL="https://example.org/gate/")
    assert settings.base_url == "https://example.org/gate"


def test_a_secret_can_be_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("k" * 40 + "\n")
    assert settings_with(tmp_path, SECRET_KEY_FILE=str(file)).secret_key == "k" * 40


def test_a_secret_in_both_a_file_and_a_variable_is_rejected(tmp_path: Path) -> None:
    sentence = sentence_for(tmp_path, SECRET_KEY_FILE="/key", SECRET_KEY="k" * 40)
    assert sentence == "SECRET_KEY and SECRET_KEY_FILE are both set. Remove one of them."


def test_an_error_names_a_missing_secret_file(tmp_path: Path) -> None:
    sentence = sentence_for(tmp_path, DATABASE_URL_FILE=str(tmp_path / "none"))
    assert sentence == "DATABASE_URL_FILE names a file that cannot be read."


def test_an_instance_path_that_is_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sentence = sentence_for(tmp_path / "file")
    assert sentence.startswith("INSTANCE_PATH must be a directory")


@pytest.mark.advisory("CVE-2023-27524")
def test_the_secret_key_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "instance"
    with ThreadPoolExecutor(16) as several:
        keys = set(several.map(lambda _: settings_with(path).secret_key, range(16)))
    assert len(keys) == 1
    assert stat.S_IMODE((path / "secret_key").stat().st_mode) == 0o600
    assert [file.name for file in path.iterdir()] == ["secret_key"]


def test_stored_settings_override_the_environment(tmp_path: Path) -> None:
    settings = apply_stored_settings(settings_with(tmp_path, TIER="free"), {"tier": "premium"})
    assert settings.tier == "premium"


def test_a_stored_setting_that_is_no_longer_valid_is_ignored(tmp_path: Path) -> None:
    stored = {"tier": "gold", "page_size": "50", "of_yesterday": "1", "port": "9000"}
    settings = apply_stored_settings(settings_with(tmp_path), stored)
    assert (settings.tier, settings.page_size, settings.port) == ("ultimate", 50, 8000)


def test_a_change_is_validated_like_a_variable() -> None:
    assert parse_setting_value("PAGE_SIZE", "50") == 50
    with pytest.raises(SettingsError, match=r"^PAGE_SIZE must be a whole number from 5 to 200"):
        parse_setting_value("page_size", "1000")


def test_only_the_environment_can_set_an_audit_retention_below_a_month(
    tmp_path: Path,
) -> None:
    with pytest.raises(SettingsError, match=r"must be a whole number of days from 30 to 36500"):
        parse_setting_value("audit_event_keep_days", "29")
    assert parse_setting_value("audit_event_keep_days", "30") == 30
    brief = settings_with(tmp_path, AUDIT_EVENT_KEEP_DAYS="7")
    assert brief.audit_event_keep_days == 7
    # A stored value from before the minimum existed is ignored.
    assert apply_stored_settings(
        settings_with(tmp_path), {"audit_event_keep_days": "1"}
    ) == apply_stored_settings(settings_with(tmp_path), {})


def test_a_setting_that_is_read_at_startup_cannot_be_changed_later() -> None:
    with pytest.raises(SettingsError, match=r"^PORT is only read from the environment"):
        parse_setting_value("port", "9000")


def test_an_unknown_setting_cannot_be_changed() -> None:
    with pytest.raises(SettingsError, match=r"^colour is not a setting"):
        parse_setting_value("colour", "blue")


def as_nobody(work: Callable[[], str]) -> str:
    """Run a function as an unprivileged user, and return its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        if not os.getuid():
            os.setuid(65_534)
        os.write(writing, work().encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def test_an_instance_path_that_is_not_writable_is_rejected() -> None:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o555)

        def sentence() -> str:
            try:
                parse_settings({"INSTANCE_PATH": made, "SECRET_KEY": "k" * 32})
            except SettingsError as error:
                return str(error)
            return "no error"

        assert as_nobody(sentence) == f"INSTANCE_PATH must be writable, but {made} is not."
        Path(made).chmod(0o700)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("API_RATELIMIT", "API_RATE_LIMIT"),
        ("api_rate_limit", "API_RATE_LIMIT"),
        ("BASE_URI", "BASE_URL"),
        ("DATABASEURL", "DATABASE_URL"),
        ("SECRET_KEY_FALLBACK", "SECRET_KEY_FALLBACKS"),
        ("SECRETKEY_FILE", "SECRET_KEY_FILE"),
        ("TRUSTED_PROXYS", "TRUSTED_PROXIES"),
        ("TRUSTED_PROXY", "TRUSTED_PROXIES"),
        ("TLS_CERT", "TLS_CERTIFICATE"),
        ("TLS_CERT_FILE", "TLS_CERTIFICATE"),
        ("DB_URL", "DATABASE_URL"),
        ("MAIL_SERVER", "MAIL_URL"),
        ("SMTP_PASSWORD_FILE", "MAIL_URL"),
        ("REDIS_URL", "RATELIMIT_STORAGE_URI"),
        ("https_proxy", "OUTGOING_PROXY"),
        ("GATEBELL_PORT", "PORT"),
        ("GATEBELL_SECRET_KEY_FILE", "SECRET_KEY"),
        ("ACCES_TOKEN_LIFETIME_SECONDS", "ACCESS_TOKEN_LIFETIME_SECONDS"),
    ],
)
def test_a_misspelled_setting_causes_a_warning(
    monkeypatch: pytest.MonkeyPatch, name: str, meant: str
) -> None:
    monkeypatch.setattr(os, "environ", {name: "x"})
    sentence = f"{name} is not a setting. Did you mean {meant}?"
    assert list_ignored_variables() == (sentence,)


@pytest.mark.parametrize(
    "name",
    ["SELF_MONITOR_PROJECT", "SELF_MONITOR_SWITCH_URL_FILE", "GATEBELL_SELF_MONITOR_PROJECT"],
)
def test_a_removed_setting_causes_a_warning(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(os, "environ", {name: "x", "SELF_MONITOR_INTERVAL_SECONDS": ""})
    (said,) = list_ignored_variables()
    assert said == (
        f"{name} is no longer a setting and is ignored. Remove it, and see "
        "docs/health-and-metrics.md#monitor-gatebell-itself."
    )


def test_variables_of_other_programs_cause_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    others = "HOME HOSTNAME PORTS PATH PAGER LANG SHELL USER TERM PWD HOST PORT TIER RELEASE"
    more = "TEST_DATABASE_URL INSTANCE_ID LOG_FILE WEB_PORT SSL_CERT_FILE"
    names = (*others.split(), *more.split(), "METRICS_TOKEN_FILE", "PYTHONPATH", "MAIL_URL")
    monkeypatch.setattr(os, "environ", dict.fromkeys(names, "x") | {"REDIS_URL": ""})
    assert list_ignored_variables() == ()


def test_a_similar_variable_causes_no_warning_if_the_setting_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = ("MAIL_URL", "SECRET_KEY_FILE", "RATELIMIT_STORAGE_URI")
    theirs = ("MAIL_HOST", "SECRET_KEY_BASE", "REDIS_URL")
    monkeypatch.setattr(os, "environ", dict.fromkeys((*ours, *theirs), "x"))
    assert list_ignored_variables() == ()


@pytest.mark.parametrize(
    ("url", "hosts", "ports"),
    [
        ("postgresql://alice:p%40@one:5432,two:5433/gatebell", "one,two", "5432,5433"),
        ("postgres://one,two/gatebell?target_session_attrs=read-write", "one,two", "5432,5432"),
        ("postgresql://alice@[::1]:1,[fd00::2]:2/gatebell", "::1,fd00::2", "1,2"),
        ("postgresql://alice@/gatebell?host=one,two&port=1,2", "one,two", "1,2"),
    ],
)
def test_a_database_can_have_several_hosts(
    tmp_path: Path, url: str, hosts: str, ports: str
) -> None:
    found = make_url(settings_with(tmp_path, DATABASE_URL=url, SECRET_KEY="k" * 32).database_url)
    assert (found.query["host"], found.query["port"]) == (hosts, ports)
    assert found.database == "gatebell"


def test_every_setting_except_a_path_can_be_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_text("3\n")
    assert settings_with(tmp_path, TRUSTED_PROXIES_FILE=str(file)).trusted_proxies == 3
    file.write_text("redis://:a-password@127.0.0.1:6379/0")
    named = settings_with(tmp_path, RATELIMIT_STORAGE_URI_FILE=str(file))
    assert named.ratelimit_storage_uri == "redis://:a-password@127.0.0.1:6379/0"
    assert sentence_for(tmp_path, TLS_KEY_FILE=str(file)) == (
        "TLS_KEY_FILE is not a setting. Set TLS_KEY to the path itself."
    )


def test_an_empty_secret_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n")
    sentence = sentence_for(tmp_path, SECRET_KEY_FILE=str(tmp_path / "key"))
    assert sentence == "SECRET_KEY_FILE names an empty file."


def test_earlier_keys_are_separated_by_commas(tmp_path: Path) -> None:
    one, other = "a" * 40, "b" * 40
    for text in (f"{one} {other}", f"{one}\n{other}", f"{one},{other} {one}"):
        sentence = sentence_for(tmp_path, SECRET_KEY_FALLBACKS=text)
        assert sentence.endswith("Use a comma between two secrets, not a space or a new line.")
        assert one not in sentence
    spaced = "the key of last year has spaces in it, so it seems"
    with_comma = settings_with(tmp_path, SECRET_KEY_FALLBACKS=f"{one}, {spaced.replace(',', '')}")
    assert with_comma.secret_key_fallbacks == (one, spaced.replace(",", ""))


def test_an_unreachable_redis_cluster_is_reported_in_a_sentence(tmp_path: Path) -> None:
    url = f"redis+cluster://:a-password@127.0.0.1:{free_port()}"
    sentence = sentence_for(tmp_path, RATELIMIT_STORAGE_URI=url)
    assert "The store is unreachable (RedisClusterException)." in sentence
    assert "a-password" not in sentence


def test_a_missing_temporary_directory_is_reported_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> str:
        raise FileNotFoundError

    monkeypatch.setattr("tempfile.gettempdir", fail)
    with pytest.raises(SettingsError, match="mount a tmpfs at /tmp"):
        check_temporary_directory()


def test_an_error_does_not_show_the_password_of_the_rate_limit_store(tmp_path: Path) -> None:
    sentence = sentence_for(tmp_path, RATELIMIT_STORAGE_URI="rediss:/:a-password@one:6379")
    assert "a-password" not in sentence


@pytest.mark.parametrize("path", ["/gate", "/tools/gate-1.0_~", "/gate/"])
def test_the_base_url_can_have_a_path(tmp_path: Path, path: str) -> None:
    settings = parse_settings({"INSTANCE_PATH": str(tmp_path), "BASE_URL": f"https://a{path}"})
    assert settings.base_url == f"https://a{path.rstrip('/')}"


@pytest.mark.parametrize(
    "path", ["//gate", "/a//b", "/..", "/gate/.", "/g%61te", "/oauth", "/API/gate", "/g a", "/-"]
)
def test_an_ambiguous_path_in_the_base_url_is_rejected(tmp_path: Path, path: str) -> None:
    with pytest.raises(SettingsError, match="BASE_URL"):
        parse_settings({"INSTANCE_PATH": str(tmp_path), "BASE_URL": f"https://a{path}"})


@pytest.mark.one_database("sqlite")
def test_the_base_path_cannot_begin_with_a_route_of_the_service(app: Flask) -> None:
    names = {rule.rule.strip("/").split("/")[0] for rule in app.url_map.iter_rules()}
    assert {name for name in names if name and not name.startswith("<")} <= OWN_FIRST_SEGMENTS
