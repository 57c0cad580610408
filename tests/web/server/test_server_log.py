"""Tests that gunicorn formats no access log line, since the application writes its own."""

from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger

from web.logging import build_logging_configuration
from web.server.gevent_worker import ServerLog
from web.settings.environment import parse_settings


@pytest.mark.parametrize(("kind", "atoms_made"), [(Logger, 1), (ServerLog, 0)])
def test_gunicorn_does_not_format_unused_log_lines(
    kind: type[Any], atoms_made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def note(*_given: Any) -> dict[str, str]:
        made.append("a line")
        return {}

    monkeypatch.setattr(kind, "atoms", note)
    config = Config()
    settings = parse_settings({"BASE_URL": "http://localhost"})
    config.set("logconfig_dict", build_logging_configuration(settings))
    monkeypatch.setattr(kind, "setup", lambda log, cfg: setattr(log, "cfg", cfg))
    kind(config).access(None, None, {}, None)
    assert len(made) == atoms_made
