"""Logs each record as one JSON object or text line, without secrets."""

import json
import logging
import logging.config
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson

from web.settings.environment import Settings
from web.standard_streams import set_dropped_lines_description

#: Standard attributes of records. All other attributes come from `extra` and are logged.
_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {
    "asctime",
    "message",
    "taskName",
}

#: Patterns of secrets that are masked in every line, including lines from libraries.
_SECRET_PATTERNS = re.compile(
    r"""(?ix)
    (?P<credential> \b gb[a-z]- ) [0-9a-z]{8,}
    | (?P<webhook> \b whsec_ ) [0-9a-z+/=]{8,}
    | (?P<ping> /-/ping/ ) [0-9a-f-]{8,}
    | (?P<scheme> \b (?:bearer|basic) \s ) \s* [^\s"',;]+
    | (?P<parameter> \b (?: access_token | refresh_token | id_token | token | code | state
        | code_verifier | client_assertion | logout_token | client_secret | secret | password
        | authorization | key ) = )
        [^&\s"']+
    | (?P<userinfo> :// [^/\s:@"]* : ) [^@\s/"]+ (?=@)
    """
)
#: Substrings that indicate a secret. Every secret contains at least one of them, and searching for
#: them is twenty times faster than matching the patterns.
_SECRET_HINTS = ("gb", "whsec_", "/ping/", "bearer", "basic", "=", "://")
_MASK = "[hidden]"


def mask_secrets(text: str) -> str:
    """Return the text with everything that looks like a credential masked."""
    folded = text.lower()
    for hint in _SECRET_HINTS:  # a generator expression would take twice as long
        if hint in folded:
            return _SECRET_PATTERNS.sub(lambda match: f"{match[match.lastgroup or 0]}{_MASK}", text)
    return text


class JsonFormatter(logging.Formatter):
    """Formatter that writes a record as one JSON object."""

    #: Function that returns the ID of the current request, or an empty string. Processes that serve
    #: requests set it. Other processes do not load Flask.
    find_request_id: Callable[[], str] = str

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON without a newline."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_collect_extra_fields(record),
        }
        if request_id := self.find_request_id():
            fields["request_id"] = request_id
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return format_json_line(fields)


def format_json_line(fields: Mapping[str, Any]) -> str:
    """Return a JSON log line without a newline."""
    try:
        line = orjson.dumps(fields, default=str).decode()
    except TypeError:  # orjson rejects lone surrogates, but the line must not be lost
        line = json.dumps(fields, default=str)
    return mask_secrets(line)


class TextFormatter(logging.Formatter):
    """Formatter that writes a record as text for a terminal, without its event key."""

    def __init__(self) -> None:
        """Set the format of the line."""
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of text, followed by the lines of its traceback."""
        given = "".join(
            f" {name}={value}"
            for name, value in _collect_extra_fields(record).items()
            if name != "event"
        )
        line = mask_secrets(super().format(record) + given)
        return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _collect_extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}


def uses_json_log(settings: Settings) -> bool:
    """Return whether log lines are JSON, which is the default unless stderr is a terminal."""
    if settings.log_format == "auto":
        return not sys.stderr.isatty()
    return settings.log_format == "json"


def build_logging_configuration(settings: Settings) -> dict[str, Any]:
    """Return the configuration for dictConfig, in which all lines go to standard error."""
    is_json = uses_json_log(settings)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": JsonFormatter if is_json else TextFormatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": settings.log_level, "handlers": ["stderr"]},
        "loggers": {
            # Debug messages of Authlib contain complete tokens.
            "authlib": {"level": "INFO"},
            # Debug messages of gunicorn contain requests.
            "gunicorn.error": {"level": "INFO", "propagate": True, "handlers": []},
            "alembic": {"level": "WARNING"},
            # SQLAlchemy silences only its own pool classes, so `InstrumentedPool` is silenced here.
            "web.database.engine": {"level": "WARNING"},
        },
    }


def skip_unused_record_fields() -> None:
    """Disable the collection of caller, thread and process information.

    The logging HOWTO recommends this.
    """
    logging._srcfile = None  # noqa: SLF001 - documented
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def configure_logging(settings: Settings) -> None:
    """Send the log lines of this process to standard error, as JSON or text."""
    skip_unused_record_fields()
    logging.config.dictConfig(build_logging_configuration(settings))
    formatter = JsonFormatter() if uses_json_log(settings) else TextFormatter()
    set_dropped_lines_description(partial(_format_dropped_lines, formatter))


def _format_dropped_lines(formatter: logging.Formatter, count: int) -> str:
    """Return the log line that reports the number of dropped lines."""
    return formatter.format(
        logging.makeLogRecord(
            {
                "name": "gatebell.log",
                "levelno": logging.WARNING,
                "levelname": "WARNING",
                "msg": "Log lines were dropped because nothing read the log.",
                "event": "log.lines_dropped",
                "dropped": count,
            }
        )
    )
