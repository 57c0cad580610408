"""Prometheus and Alertmanager themselves, run on loopback as their operators would."""

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
    """Tell whether scripts/ensure-monitoring has brought them."""
    return (PROGRAMS / "prometheus").exists() and (PROGRAMS / "prometheus-alertmanager").exists()


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 60) -> None:
    """Wait for something that others bring about."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"It did not happen: {what}."
        sleep(0.1)


class _Program:
    """A program with a directory and a port of its own."""

    def __init__(self, directory: Path, name: str, configuration: str) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        self._name = name
        self._file = directory / "configuration.yml"
        self._file.write_text(configuration, encoding="utf-8")
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready."""
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
        """Stop it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_START_SECONDS)

    def log_text(self) -> str:
        """Return what it logged."""
        return (self._directory / "log").read_text(encoding="utf-8", errors="replace")

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"http://{self.address}/-/ready", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    _storage = "path"
    _more: tuple[str, ...] = ()


class Alertmanager(_Program):
    """An Alertmanager with one receiver; waits a moment where others wait minutes."""

    # A cluster of one: it must look for no peers.
    _more = ("--cluster.listen-address=",)

    def __init__(self, directory: Path, *webhooks: dict[str, Any], repeat: str = "1h") -> None:
        """Send to webhooks, which are configured as in Alertmanager's own file."""
        route = {
            "receiver": "gatebell",
            "group_by": ["alertname"],
            "group_wait": "100ms",
            "group_interval": "300ms",
            "repeat_interval": repeat,
        }
        receivers = [{"name": "gatebell", "webhook_configs": webhooks}]
        # JSON is YAML.
        made = json.dumps({"route": route, "receivers": receivers})
        super().__init__(directory, "prometheus-alertmanager", made)

    def fire(self, *alerts: dict[str, Any]) -> None:
        """Hand it alerts, as Prometheus does; labels and annotations."""
        answer = requests.post(f"http://{self.address}/api/v2/alerts", json=alerts, timeout=10)
        assert answer.ok, answer.text


class Metric:
    """Something that Prometheus can measure: a gauge of one value."""

    def __init__(self) -> None:
        """Begin at zero."""
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
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it is measured."""
        return f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop being there."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Prometheus(_Program):
    """A Prometheus that measures a metric all the time and alerts when it is not zero."""

    _storage = "tsdb.path"

    def __init__(
        self, directory: Path, metric: Metric, alertmanager: Alertmanager | dict[str, Any]
    ) -> None:
        """Measure, and tell the Alertmanager, which may be configured as in Prometheus's file."""
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
