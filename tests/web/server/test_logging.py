"""Tests that a log line is one JSON object without secrets."""

import json
import logging

import pytest

from web.logging import JsonFormatter, TextFormatter, mask_secrets, uses_json_log
from web.settings.environment import parse_settings


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "test"})
    vars(made).update(extra)
    return made


def test_a_line_is_one_json_object_with_all_given_fields() -> None:
    line = JsonFormatter().format(record("two\nlines", status=200))
    assert "\n" not in line
    written = json.loads(line)
    assert written["message"] == "two\nlines"
    assert written["status"] == 200
    assert written["level"] == "INFO"


def test_json_lines_have_an_event_key_and_text_lines_do_not() -> None:
    made = record("Email was sent.", event="mail.sent", mail_id=3)
    assert json.loads(JsonFormatter().format(made))["event"] == "mail.sent"
    assert TextFormatter().format(made).endswith(" Email was sent. mail_id=3")


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_line_with_unencodable_characters_is_written(
    formatter: logging.Formatter,
) -> None:
    assert "before" in formatter.format(record("before \ud800 \0 after"))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("token gba-0123456789abcdefghijABCDEFGHIJ0123456789abcdefghij", "0123456789"),
        ("signed by whsec_MDEyMzQ1Njc4OWFiY2RlZg==", "MDEyMzQ1"),
        ("Authorization: Bearer abc.def-ghi", "abc.def"),
        ("authorization: basic YWxpY2U6c2VjcmV0", "YWxpY2U6"),
        ("GET /callback?code=s3cret&state=st4te", "s3cret"),
        ("GET /callback?code=s3cret&state=st4te", "st4te"),
        ("POST client_secret=s3cret", "s3cret"),
        ("postgresql://alice:hunter2@db/gatebell", "hunter2"),
        ("https://:gbk-secretsecret@example.org/x.json", "secretsecret"),
    ],
)
def test_credentials_in_a_text_are_hidden(text: str, hidden: str) -> None:
    assert hidden in text
    assert hidden not in mask_secrets(text)
    assert "[hidden]" in mask_secrets(text)


@pytest.mark.parametrize("text", ["GET /groups 200", "the keys rotate", "alice: hello@example.org"])
def test_ordinary_text_is_not_changed(text: str) -> None:
    assert mask_secrets(text) == text


def test_a_secret_in_a_traceback_is_hidden() -> None:
    with pytest.raises(ValueError, match="bad token") as caught:
        int("bad token gba-0123456789abcdefghij")
    raised = (caught.type, caught.value, caught.tb)
    line = JsonFormatter().format(record("it failed", exc_info=raised))
    assert "ValueError" in line
    assert "0123456789" not in line


@pytest.mark.parametrize(
    ("chosen", "on_terminal", "is_json"),
    [("auto", True, False), ("auto", False, True), ("json", True, True), ("text", False, False)],
)
def test_lines_are_text_on_a_terminal_and_json_elsewhere(
    chosen: str, *, on_terminal: bool, is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: on_terminal)
    settings = parse_settings({"BASE_URL": "http://localhost", "LOG_FORMAT": chosen})
    assert uses_json_log(settings) is is_json
