"""The rules for Prometheus in the documents, tried by promtool."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.alerts.monitoring import PROGRAMS, is_installed
from tests.support.service.live import ROOT

_TESTS = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'gatebell_page_queue_age_seconds{channel="email", instance="one"}'
        values: '0 0 90 150 210 270 0 0'
      - series: 'gatebell_page_messages_total{channel="apprise", outcome="given_up"}'
        values: '3 3 3 3 3 4 4 4'
      - series: 'gatebell_page_messages_total{channel="apprise", outcome="sent"}'
        values: '0+100x8'
      - series: 'gatebell_worker_last_seen_timestamp_seconds'
        values: '0 0 0 0 0 0 0 0'
    alert_rule_test:
      - {eval_time: 3m, alertname: GatebellPagesDelayed, exp_alerts: []}
      - eval_time: 5m
        alertname: GatebellPagesDelayed
        exp_alerts:
          - exp_labels: {severity: critical, channel: email}
            exp_annotations: {summary: "Pages by email have waited for 4m 30s"}
      - {eval_time: 7m, alertname: GatebellPagesDelayed, exp_alerts: []}
      - {eval_time: 4m, alertname: GatebellPagesGivenUp, exp_alerts: []}
      - eval_time: 6m
        alertname: GatebellPagesGivenUp
        exp_alerts:
          - exp_labels: {severity: high, channel: apprise}
            exp_annotations: {summary: "Pages by apprise were given up"}
      - {eval_time: 5m, alertname: GatebellWorkerSilent, exp_alerts: []}
      - eval_time: 6m
        alertname: GatebellWorkerSilent
        exp_alerts:
          - exp_labels: {severity: critical}
            exp_annotations: {summary: "No background worker of Gatebell runs, so nobody is paged"}
"""


@pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring brings Prometheus")
def test_the_rules_about_pages_fire_when_they_should(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "notifications.md").read_text(encoding="utf-8")
    found = re.search(r"```yaml\n(groups:.*?)```", text, re.DOTALL)
    assert found is not None
    (tmp_path / "rules.yml").write_text(found[1], encoding="utf-8")
    (tmp_path / "tests.yml").write_text(_TESTS, encoding="utf-8")
    for command in (("check", "rules", "rules.yml"), ("test", "rules", "tests.yml")):
        done = subprocess.run(
            [str(PROGRAMS / "promtool"), *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
