"""Real Prometheus and Alertmanager processes on loopback."""

import json
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import requests

from tests.support.service.live import ROOT
from tests.support.service.ports import free_port

_UNPACKED = ROOT / ".monitoring"
PROGRAMS = _UNPACKED / "usr" / "bin"
_START_SECONDS = 30


def is_installed() -> bool:
    """Return whether scripts/ensure-monitoring has installed them."""
    return (PROGRAMS / "prometheus").exists() and (PROGRAMS / "prometheus-alertmanager").exists()


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 60) -> None:
    """Wait until another program meets a condition."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"It did not happen: {what}."
        sleep(0.1)


class _Program:
    """A program with its own directory and port."""

    def __init__(self, directory: Path, name: str, configuration: str) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        self._name = name
        self._file = directory / "configuration.yml"
        self._file.write_text(configuration, encoding="utf-8")
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program, and wait until it is ready."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(PROGRAMS / self._name),
                    f"--config.file={self._file}",
                    f"--web.listen-address={self.address}",
                    f"--storage.{self._storage}={self._directory / 'data'}",
                    *self._more,
                ],
                cwd=_UNPACKED,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self._is_ready, f"{self._name} is ready", seconds=_START_SECONDS)

    def stop(self) -> None:
        """Stop the program."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_START_SECONDS)

    def log_text(self) -> str:
        """Return the program's log."""
        return (self._directory / "log").read_text(encoding="utf-8", errors="replace")

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"http://{self.address}/-/ready", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    _storage = "path"
    _more: tuple[str, ...] = ()


class Alertmanager(_Program):
    """An Alertmanager with one receiver; its delays are short."""

    # This Alertmanager has no peers, so it must not look for any.
    _more = ("--cluster.listen-address=",)

    def __init__(self, directory: Path, *webhooks: dict[str, Any], repeat: str = "1h") -> None:
        """Configure webhooks in the format of Alertmanager's own file."""
        route = {
            "receiver": "gatebell",
            "group_by": ["alertname"],
            "group_wait": "100ms",
            "group_interval": "300ms",
            "repeat_interval": repeat,
        }
        receivers = [{"name": "gatebell", "webhook_configs": webhooks}]
        # JSON is valid YAML.
        made = json.dumps({"route": route, "receivers": receivers})
        super().__init__(directory, "prometheus-alertmanager", made)

    def fire(self, *alerts: dict[str, Any]) -> None:
        """Send alerts to the Alertmanager as Prometheus does, with labels and annotations."""
        answer = requests.post(f"http://{self.address}/api/v2/alerts", json=alerts, timeout=10)
        assert answer.ok, answer.text


class Metric:
    """A gauge that Prometheus can scrape."""

    def __init__(self) -> None:
        """Start with the value zero."""
        self.value = 0
        metric = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = f'disk_full{{host="db-1",severity="warning"}} {metric.value}\n'
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Do not log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def address(self) -> str:
        """Host and port of the metric."""
        return f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop serving the metric."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Prometheus(_Program):
    """A Prometheus that scrapes a metric continuously and alerts if it is not zero."""

    _storage = "tsdb.path"

    def __init__(
        self, directory: Path, metric: Metric, alertmanager: Alertmanager | dict[str, Any]
    ) -> None:
        """Scrape the metric, and send alerts to an Alertmanager.

        The Alertmanager may be configured in the format of Prometheus's file.
        """
        if isinstance(alertmanager, Alertmanager):
            alertmanager = {"static_configs": [{"targets": [alertmanager.address]}]}
        rules = directory.parent / f"{directory.name}-rules.yml"
        rule = {
            "alert": "DiskFull",
            "expr": "disk_full > 0",
            "annotations": {
                "summary": "Disk of {{ $labels.host }} is full",
                "description": "Value {{ $value }}",
            },
        }
        rules.write_text(json.dumps({"groups": [{"name": "disks", "rules": [rule]}]}))
        made = {
            "global": {"scrape_interval": "300ms", "evaluation_interval": "300ms"},
            "scrape_configs": [
                {"job_name": "disks", "static_configs": [{"targets": [metric.address]}]}
            ],
            "alerting": {"alertmanagers": [alertmanager]},
            "rule_files": [str(rules)],
        }
        super().__init__(directory, "prometheus", json.dumps(made))
