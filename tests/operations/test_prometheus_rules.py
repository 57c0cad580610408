"""Tests of the documented Prometheus rules with promtool."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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
      - {eval_time: 6m, alertname: GatebellWorkerSilent, exp_alerts: []}
      - eval_time: 7m
        alertname: GatebellWorkerSilent
        exp_alerts:
          - exp_labels: {severity: critical}
            exp_annotations: {summary: "No background worker of Gatebell runs, so nobody is paged"}
"""


#: Series of each fault, and the alert that fires after ten minutes, with its labels and its
#: sentence.
_FAULTS: dict[str, tuple[dict[str, str], str, dict[str, str], str]] = {
    "a host is down": (
        {'up{job="gatebell", instance="one"}': "0x20"},
        "GatebellDown",
        {"severity": "critical", "job": "gatebell", "instance": "one"},
        "one does not respond",
    ),
    "an integration rejects everything": (
        {"gatebell_integrations_rejecting": "0 2x19"},
        "GatebellIntegrationsReject",
        {"severity": "high"},
        "2 integrations that worked before now reject all requests",
    ),
    "Prometheus knows of no host": (
        {'up{job="other", instance="one"}': "1x20"},
        "GatebellDown",
        {"severity": "critical", "job": "gatebell"},
        "Prometheus scrapes no host of Gatebell",
    ),
    "the database is away": (
        {'gatebell_ready{reason="away", instance="one"}': "0x20"},
        "GatebellNotReady",
        {"severity": "critical", "reason": "away", "instance": "one"},
        "one cannot serve requests: away",
    ),
    "no host says whether it is ready": (
        {"other": "0x20"},
        "GatebellNotReady",
        {"severity": "critical"},
        "No host reports whether it can serve requests",
    ),
    "the database is away, and the worker with it": (
        {'gatebell_worker_last_seen_timestamp_seconds{instance="one"}': "60x20"},
        "GatebellWorkerSilent",
        {"severity": "critical"},
        "No background worker of Gatebell is running, so nobody is paged",
    ),
    "no worker ever ran, as its series says": (
        {'gatebell_worker_last_seen_timestamp_seconds{instance="one"}': "0x20"},
        "GatebellWorkerSilent",
        {"severity": "critical"},
        "No background worker of Gatebell is running, so nobody is paged",
    ),
    "there is no series of a worker": (
        {"other": "0x20"},
        "GatebellWorkerSilent",
        {"severity": "critical"},
        "No background worker of Gatebell is running, so nobody is paged",
    ),
    "there is no series of pruning": (
        {"other": "0x20"},
        "GatebellNotPruned",
        {"severity": "medium"},
        "Gatebell has not pruned expired data for an hour",
    ),
    "a request finds no connection for the first time": (
        {'gatebell_database_pool_events_total{event="timed_out", instance="one"}': "0x8 1 1 1"},
        "GatebellPoolExhausted",
        {"severity": "high", "instance": "one"},
        "Requests to one timed out while waiting for a database connection",
    ),
    "pages wait past their time": (
        {'gatebell_pages_overdue{instance="one"}': "3x20"},
        "GatebellPagesOverdue",
        {"severity": "critical"},
        "3 pages or messages are more than a minute late",
    ),
    "a clock ran ahead": (
        {'gatebell_times_ahead_of_clock{instance="one"}': "5x20"},
        "GatebellClockWasAhead",
        {"severity": "high"},
        "A clock ran ahead, and 5 stored times have not been corrected",
    ),
    "nobody reads the log": (
        {'gatebell_dropped_log_lines_total{reason="unread", instance="one"}': "0x8 7 7 7"},
        "GatebellLogUnread",
        {"severity": "high", "instance": "one"},
        "Nothing reads the log of one, so log lines were dropped",
    ),
    "a destination refuses audit events": (
        {'gatebell_audit_stream_set_aside_events{stream="3", instance="one"}': "2x20"},
        "GatebellAuditEventsSetAside",
        {"severity": "medium", "stream": "3"},
        "The destination of audit stream 3 has repeatedly rejected 2 events",
    ),
    "a renewed certificate has another key": (
        {'gatebell_tls_certificate_rejected{instance="one"}': "1x20"},
        "GatebellCertificateRejected",
        {"severity": "high", "instance": "one"},
        "one cannot use the files of its renewed certificate",
    ),
    "no backup was ever made, as its series says": (
        {'gatebell_backup_last_success_timestamp_seconds{instance="one"}': "-200000x20"},
        "GatebellBackupMissing",
        {"severity": "high"},
        "Gatebell has not been backed up for 36 hours",
    ),
    "there is no series of a backup": (
        {"other": "0x20"},
        "GatebellBackupMissing",
        {"severity": "high"},
        "Gatebell has not been backed up for 36 hours",
    ),
    "a backup failed": (
        {
            'gatebell_backup_last_success_timestamp_seconds{instance="one"}': "5x20",
            'gatebell_backup_last_failure_timestamp_seconds{instance="two"}': "0 0 60x20",
        },
        "GatebellBackupFailed",
        {"severity": "high"},
        "The last backup of Gatebell failed",
    ),
    "a job of the worker fails": (
        {'gatebell_task_last_failure_timestamp_seconds{task="prune", instance="one"}': "300x20"},
        "GatebellTaskFails",
        {"severity": "medium", "task": "prune"},
        "The worker's job prune failed 5m 0s ago",
    ),
    "a disk fills up": (
        {'gatebell_disk_free_bytes{place="repositories", instance="one"}': "1073741824x20"},
        "GatebellDiskFull",
        {"severity": "high", "place": "repositories", "instance": "one"},
        "one has 1GiB of free disk space for repositories",
    ),
    "the store of rate limits is away": (
        {'gatebell_rate_limit_store_up{instance="one"}': "0x20"},
        "GatebellRateLimitStoreAway",
        {"severity": "medium", "instance": "one"},
        "one cannot reach the rate limit store, so each process counts requests separately",
    ),
    "a host starts again and again": (
        {'process_start_time_seconds{job="gatebell", instance="one"}': "0 1 2 3 4 4 4 4 4 4 4 4"},
        "GatebellRestarts",
        {"severity": "high", "job": "gatebell", "instance": "one"},
        "one has restarted 4 times in 30 minutes",
    ),
}
#: Series of a healthy installation, for which no alert may fire.
_WELL = {
    'up{job="gatebell", instance="one"}': "1x120",
    'gatebell_ready{reason="ok", instance="one"}': "1x120",
    "gatebell_worker_last_seen_timestamp_seconds": "0+60x120",
    "gatebell_prune_last_started_timestamp_seconds": "0+60x120",
    "gatebell_pages_overdue": "0x120",
    "gatebell_times_ahead_of_clock": "0x120",
    'gatebell_audit_stream_set_aside_events{stream="3"}': "0x120",
    'gatebell_dropped_log_lines_total{reason="unread", instance="one"}': "0x120",
    'process_start_time_seconds{job="gatebell", instance="one"}': "1x120",
    'gatebell_tls_certificate_rejected{instance="one"}': "0x120",
    "gatebell_backup_last_success_timestamp_seconds": "0x120",
    "gatebell_backup_last_failure_timestamp_seconds": "0x120",
    'gatebell_disk_free_bytes{place="instance", instance="one"}': "4294967296x120",
    'gatebell_rate_limit_store_up{instance="one"}': "1x120",
    'gatebell_configuration_warnings{instance="one"}': "0x120",
    'gatebell_build_info{version="1", instance="one"}': "1x120",
    'gatebell_build_info{version="1", instance="two"}': "1x120",
}


def series(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": each} for name, each in values.items()]


@pytest.mark.long
@pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring brings Prometheus")
def test_the_deployed_rules_fire_only_for_faults(tmp_path: Path) -> None:
    rules = (ROOT / "deploy" / "prometheus" / "gatebell-rules.yml").read_text(encoding="utf-8")
    names = re.findall(r"- alert: (\w+)", rules)
    cases: list[dict[str, Any]] = [
        {
            "name": fault,
            "interval": "1m",
            "input_series": series(values),
            "alert_rule_test": [
                {
                    "eval_time": "10m",
                    "alertname": alert,
                    "exp_alerts": [
                        {"exp_labels": labels, "exp_annotations": {"summary": sentence}}
                    ],
                }
            ],
        }
        for fault, (values, alert, labels, sentence) in _FAULTS.items()
    ]
    well = [{"eval_time": "110m", "alertname": name, "exp_alerts": []} for name in names]
    cases.append(
        {"name": "all is well", "interval": "1m", "input_series": series(_WELL)}
        | {"alert_rule_test": well}
    )
    tests = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": cases}
    promtool(tmp_path, rules, yaml.safe_dump(tests))


@pytest.mark.skipif(not is_installed(), reason="scripts/ensure-monitoring brings Prometheus")
def test_the_rules_about_pages_fire_when_they_should(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "notifications.md").read_text(encoding="utf-8")
    found = re.search(r"```yaml\n(groups:.*?)```", text, re.DOTALL)
    assert found is not None
    promtool(tmp_path, found[1], _TESTS)


def promtool(folder: Path, rules: str, tests: str) -> None:
    """Check rules and run their tests."""
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    (folder / "tests.yml").write_text(tests, encoding="utf-8")
    for command in (("check", "rules", "rules.yml"), ("test", "rules", "tests.yml")):
        done = subprocess.run(
            [str(PROGRAMS / "promtool"), *command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
