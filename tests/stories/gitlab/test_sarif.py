"""Checks the output of `gatebell releases check --format sarif` against the schema of SARIF 2.1.0.

The schema is from Microsoft's package for Jest.
"""

import json
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema_rs import Draft4Validator

from tests.domain.releases.checker.examples import BREAKS
from tests.stories.javascript import install
from tests.support.service.live import LiveGatebell

FOLDER = Path(__file__).parents[1] / "sarif"
SCHEMA = FOLDER / "node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("M2")]


@cache
def schema() -> Draft4Validator:
    install(FOLDER)
    found = json.loads(SCHEMA.read_text(encoding="utf-8"))
    # These patterns have an unbalanced bracket, and no log of ours has a language.
    for name in ("run", "toolComponent"):
        del found["definitions"][name]["properties"]["language"]["pattern"]
    return Draft4Validator(found, validate_formats=True)


def errors(log: object) -> list[str]:
    return [f"{each.instance_path}: {each.message}" for each in schema().iter_errors(log)]


@pytest.mark.long
def test_a_log_with_every_change_is_valid(gatebell: LiveGatebell, tmp_path: Path) -> None:
    files = {}
    for number, example in enumerate(BREAKS):
        file = tmp_path / f"Größe {number} #1?" / example.name
        file.parent.mkdir()
        file.write_text(example.content)
        files[str(file)] = example

    done = gatebell.run_cli("releases", "check", *files, "--format", "sarif")

    assert done.returncode == 1, done.stderr
    log = json.loads(done.stdout)
    assert errors(log) == []
    (run,) = log["runs"]
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert set(rules) >= {example.change for example in BREAKS}
    assert len(set(rules)) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        path = unquote(urlsplit(place["artifactLocation"]["uri"]).path)
        assert place["region"]["startLine"] <= files[path].content.count("\n") + 1


@pytest.mark.parametrize("name", ["-", "./src/a b.py", "src\\a.py", "../a:b.py", "a//b.py"])
def test_a_log_refers_to_files_by_valid_uris(
    gatebell: LiveGatebell, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    monkeypatch.chdir(inside)
    source = 'requests.get("https://gatebell.example/api/v4/users?page=2")\n'
    if name != "-":
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(source)

    done = gatebell.run_cli("releases", "check", name, "--format", "sarif", stdin=source)

    log = json.loads(done.stdout)
    assert errors(log) == []
    (result,) = log["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert not urlsplit(uri).scheme, "a colon makes no scheme"


def test_a_log_without_findings_is_valid(gatebell: LiveGatebell, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")

    done = gatebell.run_cli("releases", "check", str(file), "--format", "sarif")

    assert (done.returncode, errors(json.loads(done.stdout))) == (0, [])
    assert errors({"version": "2.0.0", "runs": []}), "the schema refuses what is none"
