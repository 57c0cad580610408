"""Answers to the questions about a mapping that are given on the command line."""

import json
from pathlib import Path
from typing import Any

from flask import Flask

from tests.support.service.commands import operate

_SAMPLE = {"title": "Disk full", "host": "web-1", "severity": "weird", "id": "a-1"}


def test_the_command_applies_answers(app: Flask, tmp_path: Path) -> None:
    file = tmp_path / "sample.json"
    file.write_text(json.dumps(_SAMPLE), encoding="utf-8")
    command = ("integrations", "recognize", str(file))
    found: Any = operate(app, *command)
    (asked,) = [each for each in found["questions"] if each["name"] == "severity"]
    assert asked["answer"] is None
    assert found["rules"]["severity_words"]["weird"] == "critical"
    answered: Any = operate(app, *command, "--answer", "severity=high", "--answer", "severity=low")
    assert answered["rules"]["severity_words"]["weird"] == "low"
    (asked,) = [each for each in answered["questions"] if each["name"] == "severity"]
    assert asked["answer"] == "low"


def test_an_answer_needs_a_question_and_a_value(app: Flask, tmp_path: Path) -> None:
    file = tmp_path / "sample.json"
    file.write_text(json.dumps(_SAMPLE), encoding="utf-8")
    for wrong in ("severity", "=high", "severity="):
        command = ["integrations", "recognize", str(file), "--answer", wrong]
        result = app.test_cli_runner().invoke(args=command)
        assert result.exit_code == 2
        assert "NAME=VALUE" in result.output


def test_the_command_completes_the_fingerprint(app: Flask, tmp_path: Path) -> None:
    file = tmp_path / "sample.json"
    sample = {"Type": "job.faulted", "Robot": {"MachineName": "PC-2"}, "ProcessKey": "Invoices"}
    file.write_text(json.dumps(sample), encoding="utf-8")
    chosen = '["ProcessKey"]'
    found: Any = operate(
        app, "integrations", "recognize", str(file), "--answer", f"fingerprint={chosen}"
    )
    (asked,) = [each for each in found["questions"] if each["name"] == "fingerprint"]
    assert chosen in [each["value"] for each in asked["choices"]]
    assert json.loads(chosen) in found["rules"]["joins"]["fingerprint"]["paths"]
