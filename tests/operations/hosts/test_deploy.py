"""Tests of the files of deploy/, as far as a machine without containers can run them."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from errno import EAFNOSUPPORT
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.alerts.monitoring import PROGRAMS, is_installed
from tests.support.service.certificates import write_certificate
from tests.support.service.live import ROOT, LiveGatebell, NewService, running
from tests.support.service.ports import free_port
from tests.support.service.proxies import find, running_proxy
from web.server.listen_address import get_listening_host
from web.settings.environment import Settings
from web.settings.fields import SettingSource, get_setting_metadata

pytestmark = pytest.mark.one_database("sqlite")
DEPLOY = ROOT / "deploy"
CONTAINER = DEPLOY / "container"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the code that the Containerfile copies, without the packages that it installs."""
    folder = tmp_path_factory.mktemp("image")
    text = (CONTAINER / "Containerfile").read_text(encoding="utf-8")
    for names in re.findall(r"^COPY (?!--)(.*)$", text.split("FROM")[-1], re.MULTILINE):
        *sources, target = names.split()
        for source in sources:
            place = folder / (source if target in {"./", source} else target)
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place)
    return folder


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    return write_certificate(tmp_path_factory.mktemp("tls") / "gate.pem", key)


@pytest.fixture(scope="module")
def live(new_service: NewService, image: Path, certificate: Path) -> Iterator[LiveGatebell]:
    """Run the web server from the files of the image, with a proxy's base URL."""
    port = free_port()
    live = new_service(
        "sqlite",
        only="web",
        BASE_URL=f"https://127.0.0.1:{port}",
        TRUSTED_PROXIES="1",
        TRUSTED_CA_FILE=str(certificate),
    )
    live.code = image
    with running(live):
        yield live


@pytest.mark.long
@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_a_proxy_forwards_requests_and_clients_cannot_forge_their_address(
    name: str, live: LiveGatebell, certificate: Path, tmp_path: Path
) -> None:
    if find(name) is None:
        pytest.skip("scripts/ensure-proxies brings it")
    base_url = live.environment["BASE_URL"]
    port = int(base_url.rpartition(":")[2])
    with running_proxy(
        name, folder=tmp_path, certificate=certificate, port=port, service_ports=[live.port]
    ):
        page = requests.get(f"{base_url}/users/sign_in", verify=str(certificate), timeout=60)
        assert (page.status_code, "Sign in" in page.text) == (200, True)
        # The guide is read from files next to the code.
        guide = requests.get(f"{base_url}/help/guides/curl", verify=str(certificate), timeout=60)
        assert guide.status_code == 200
        metrics = requests.get(f"{base_url}/metrics", verify=str(certificate), timeout=60)
        assert metrics.status_code == 404
        checks = json.loads(live.run_cli("doctor").stdout)["checks"]
    (said,) = (each for each in checks if each["check"] == "proxy")
    assert said == {
        "check": "proxy",
        "state": "ok",
        "message": "BASE_URL is reachable through 1 proxy. The address of this host is 127.0.0.1.",
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "families"),
    [("::", ("[::1]", "127.0.0.1")), ("0.0.0.0", ("127.0.0.1",))],  # noqa: S104 - loopback is asked
)
def test_the_image_can_be_reached_and_probed_over_ipv6_and_ipv4(
    host: str, families: tuple[str, ...], new_service: NewService, image: Path
) -> None:
    live = new_service("sqlite", only="web", HOST=host)
    live.code = image
    probe = (sys.executable, "scripts/probe")
    with running(live):
        for each in families:
            answer = requests.get(f"http://{each}:{live.port}/healthz", timeout=30)
            assert answer.status_code == 200
        subprocess.run(probe, cwd=image, env={"PORT": str(live.port)}, check=True)
    done = subprocess.run(probe, cwd=image, env={"PORT": str(live.port)}, check=False)
    assert done.returncode == 1


def test_without_ipv6_the_image_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> socket.socket:
        raise OSError(EAFNOSUPPORT, "Address family not supported by protocol")

    assert get_listening_host("127.0.0.1") == "127.0.0.1"
    monkeypatch.setattr("socket.socket", fail)
    assert get_listening_host("::") == "0.0.0.0"  # noqa: S104 - compared, not bound


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_units_and_rates_them_as_confined(tmp_path: Path) -> None:
    units = []
    for unit in (DEPLOY / "systemd").glob("*.[st]*"):
        text = unit.read_text(encoding="utf-8").replace("/opt/gatebell", str(ROOT))
        units.append(tmp_path / unit.name)
        units[-1].write_text(text, encoding="utf-8")
    assert len(units) == 7
    verify = ("systemd-analyze", "verify", "--man=no", *map(str, units))
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    confined = [str(each) for each in units if each.suffix == ".service"]
    rating = ("systemd-analyze", "security", "--offline=true", "--threshold=20", *confined)
    done = subprocess.run(rating, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((CONTAINER / "compose.yaml").read_text(encoding="utf-8"))
    return read


def test_the_compose_file_refers_to_existing_files_and_services(tmp_path: Path) -> None:
    described = compose()
    services = described["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        assert set(service.get("secrets", ())) <= set(described["secrets"]), name
        assert set(service["networks"]) <= set(described["networks"]), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            found = (CONTAINER / source).exists() or source in described["volumes"]
            assert found, volume
    # These are the commands of an operator.
    shutil.copy(CONTAINER / "make-secrets", tmp_path)
    command = (str(tmp_path / "make-secrets"), "gate.example.com")
    subprocess.run(command, capture_output=True, check=True)
    for secret in described["secrets"].values():
        assert (tmp_path / secret["file"]).read_text(encoding="utf-8").strip(), secret
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, "already exists" in again.stderr) == (1, True)


def variables_in(file: Path) -> set[str]:
    return set(re.findall(r"^#?([A-Z_]+)=", file.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_variable_of_the_examples_is_a_setting() -> None:
    known = {each.name.upper() for each in fields(Settings)}
    known |= {
        f"{each.name.upper()}_FILE"
        for each in fields(Settings)
        if get_setting_metadata(each).source is SettingSource.SECRET
    }
    used = variables_in(DEPLOY / "systemd" / "environment")
    for name in ("web-1", "web-2", "worker", "migrate"):
        used |= set(compose()["services"][name]["environment"])
    assert used <= known


#: Return all names of metrics in the code, with the suffixes of histograms.
def metric_names() -> set[str]:
    found: set[str] = set()
    for file in (*ROOT.glob("web/**/*.py"), *ROOT.glob("blueprints/**/*.py")):
        found |= set(re.findall(r'"(gatebell_[a-z_]+)"', file.read_text(encoding="utf-8")))
    parts = ("_bucket", "_sum", "_count", "_total")
    return found | {f"{name}{part}" for name in found for part in parts}


def dashboard_queries() -> list[str]:
    board = json.loads((DEPLOY / "grafana" / "gatebell.json").read_text(encoding="utf-8"))
    targets = [target for panel in board["panels"] for target in panel.get("targets", ())]
    return [target["expr"].replace("$job", ".*") for target in targets]


def test_dashboard_and_rules_use_existing_metrics() -> None:
    rules = (DEPLOY / "prometheus" / "gatebell-rules.yml").read_text(encoding="utf-8")
    texts = [*dashboard_queries(), *re.findall(r"expr: (.*?)\n +(?:for|labels)", rules, re.DOTALL)]
    asked = {name for text in texts for name in re.findall(r"\bgatebell_[a-z_]+", text)}
    assert len(asked) > 20
    assert asked - metric_names() == set()


_TESTS = """
rule_files: [gatebell-rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="gatebell", instance="one"}', values: '1 1 0 0 0 0 0 0'}
      - {series: 'gatebell_mail_queue_age_seconds', values: '1810+60x20'}
      - {series: 'gatebell_queue_oldest_age_seconds{queue="email"}', values: '910+60x20'}
      - {series: 'gatebell_queue_oldest_age_seconds{queue="audit_streams"}', values: '910+60x20'}
      - series: 'gatebell_database_pool_events_total{event="timed_out", instance="one"}'
        values: '0 0 0 3 3 3 3 3 3 3'
      - {series: 'gatebell_worker_last_seen_timestamp_seconds', values: '0+60x20'}
    alert_rule_test:
      - {eval_time: 3m, alertname: GatebellDown, exp_alerts: []}
      - eval_time: 5m
        alertname: GatebellDown
        exp_alerts:
          - exp_labels: {severity: critical, job: gatebell, instance: one}
            exp_annotations: {summary: "one does not respond"}
      - eval_time: 6m
        alertname: GatebellMailDelayed
        exp_alerts:
          - exp_labels: {severity: medium}
            exp_annotations: {summary: "Emails from Gatebell have been waiting for 36m 10s"}
      - eval_time: 6m
        alertname: GatebellQueueDelayed
        exp_alerts:
          - exp_labels: {severity: medium, queue: audit_streams}
            exp_annotations:
              summary: "The queue audit_streams contains an item that has been waiting for 21m 10s"
      - {eval_time: 2m, alertname: GatebellPoolExhausted, exp_alerts: []}
      - eval_time: 5m
        alertname: GatebellPoolExhausted
        exp_alerts:
          - exp_labels: {severity: high, instance: one}
            exp_annotations:
              summary: "Requests to one timed out while waiting for a database connection"
      - {eval_time: 15m, alertname: GatebellWorkerSilent, exp_alerts: []}
"""


@pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring brings Prometheus")
def test_prometheus_accepts_rules_and_queries_and_the_rules_fire(tmp_path: Path) -> None:
    for file in (DEPLOY / "prometheus").iterdir():
        shutil.copy(file, tmp_path)
    queries = [{"record": f"query:{n}", "expr": q} for n, q in enumerate(dashboard_queries())]
    recorded = {"groups": [{"name": "dashboard", "rules": queries}]}
    (tmp_path / "dashboard.yml").write_text(json.dumps(recorded), encoding="utf-8")
    (tmp_path / "tests.yml").write_text(_TESTS, encoding="utf-8")
    for command in (
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("check", "rules", "gatebell-rules.yml", "dashboard.yml"),
        ("test", "rules", "tests.yml"),
    ):
        promtool = (str(PROGRAMS / "promtool"), *command)
        done = subprocess.run(promtool, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
