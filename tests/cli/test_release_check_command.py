"""Tests of `gatebell releases check`, which consumers run in CI."""

import json
from pathlib import Path

import pytest

from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

_BREAKING = "import gitlab\n\ngl.users.list(page=2)\n"
_SECRET = "glpat-Zq8sVt3Xk1LmNp7RwYbC"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src" / "node_modules").mkdir(parents=True)
    (tmp_path / "src" / "users.py").write_text(_BREAKING)
    (tmp_path / "src" / "fine.py").write_text("print('hello')\n")
    (tmp_path / "src" / "logo.png").write_bytes(b"\x89PNG\x00")
    (tmp_path / "src" / "chart.yaml").write_text("a: {{ .Values.a }}\n- b\n")
    (tmp_path / "src" / "node_modules" / "users.py").write_text(_BREAKING)
    return tmp_path


def test_findings_are_printed_one_per_line_with_status_1(
    gatebell: LiveGatebell, folder: Path
) -> None:
    done = gatebell.run_cli("releases", "check", str(folder), "--release", "18.0")
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert line.startswith(f"{folder}/src/users.py:3: error: Offset pagination of /users removed")
    assert "keyset" in line
    assert "chart.yaml: The content is not valid YAML" in done.stderr
    assert done.stderr.endswith("2 files read: 1 finding up to release 18.0.\n")


def test_possible_findings_are_printed_as_warnings(gatebell: LiveGatebell, folder: Path) -> None:
    (folder / "a.py").write_text("project.operations_access_level = 'private'\n")
    done = gatebell.run_cli("releases", "check", str(folder / "a.py"))
    assert done.stdout.startswith(f"{folder}/a.py:1: warning: ")
    listed = gatebell.run_cli("releases", "check", str(folder), "--format", "json").stdout
    told = {Path(each["file"]).name: each["certainty"] for each in json.loads(listed)["findings"]}
    assert told == {"a.py": "possible", "users.py": "sure"}


def test_the_status_is_0_if_nothing_breaks(gatebell: LiveGatebell, folder: Path) -> None:
    file = str(folder / "src" / "users.py")
    assert gatebell.run_cli("releases", "check", file, "--release", "16.11").returncode == 0
    done = gatebell.run_cli("releases", "check", str(folder / "src" / "fine.py"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "1 file read: nothing breaks up to release 18.0.\n"


def test_the_status_is_2_for_unreadable_files_and_invalid_arguments(
    gatebell: LiveGatebell, folder: Path
) -> None:
    chart = str(folder / "src" / "chart.yaml")
    users = str(folder / "src" / "users.py")
    for arguments in (
        *((str(folder / "src" / "logo.png"),), (users, chart), (str(folder / "nothing.py"),)),
        *(("-",), (), ("-", "--release", "next"), ("-", "--format", "xml")),
    ):
        done = gatebell.run_cli("releases", "check", *arguments, stdin=f"{_SECRET}\x00")
        assert done.returncode == 2, arguments
        assert _SECRET not in done.stderr + done.stdout


def test_standard_input_is_recognized_by_its_content(gatebell: LiveGatebell) -> None:
    sent = f"GET /api/v4/users?private_token={_SECRET}&page=2\n"
    done = gatebell.run_cli("releases", "check", "-", "--format", "json", stdin=sent)
    [finding] = json.loads(done.stdout)["findings"]
    assert (finding["file"], finding["line"]) == ("-", 1)
    assert finding["url"] == f"{gatebell.url}/help/releases/users-offset-pagination"
    assert _SECRET not in done.stdout


def test_sarif_has_a_rule_for_each_change_and_a_result_for_each_finding(
    gatebell: LiveGatebell, folder: Path
) -> None:
    (folder / "tls.py").write_text("import ssl\nssl.SSLContext(ssl.PROTOCOL_TLSv1)\n")
    done = gatebell.run_cli("releases", "check", str(folder), "--format", "sarif")
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {each["id"] for each in rules} == {"users-offset-pagination", "tls-versions"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        [place] = result["locations"]
        assert place["physicalLocation"]["region"]["startLine"] in {2, 3}
        assert place["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")
    assert {each["level"] for each in run["results"]} == {"error", "warning"}


@pytest.mark.long
def test_the_check_runs_as_a_separate_program(gatebell: LiveGatebell, folder: Path) -> None:
    done = gatebell.run_program("releases", "check", str(folder / "src" / "users.py"))
    assert done.returncode == 1, done.stderr
    assert "users.py:3: " in done.stdout
