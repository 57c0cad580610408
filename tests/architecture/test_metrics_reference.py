"""The documents list the metrics of the code and the alerting rules that use them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client import ProcessCollector

ROOT = Path(__file__).parents[2]
#: Imports of modules that declare metrics.
_DECLARING = re.compile(
    r"^from (?:prometheus_client.* import|web\.metrics import .*\bGauge\b)", re.MULTILINE
)
_NAME = re.compile(r"(?:gatebell|process)_[a-z_]+")


def test_the_table_lists_exactly_the_metrics_of_the_code() -> None:
    assert set(_rules_by_metric()) == {*_declared(), *_of_processes()}


def test_the_table_names_the_rules_that_use_each_metric() -> None:
    file = ROOT / "deploy" / "prometheus" / "gatebell-rules.yml"
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    expressions = {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}
    for name, rules in _rules_by_metric().items():
        used = re.compile(rf"\b{name}(?:_bucket)?\b")
        assert rules == {rule for rule, text in expressions.items() if used.search(text)}, name


def _rules_by_metric() -> dict[str, set[str]]:
    """Return the rules that the table names for each metric."""
    text = (ROOT / "docs" / "health-and-metrics.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {
        row[0].strip(" `"): set(re.findall(r"`(\w+)`", row[-1]))
        for row in rows
        if _NAME.fullmatch(row[0].strip(" `"))
    }


def _declared() -> Iterator[str]:
    for folder in ("web", "blueprints"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if _DECLARING.search(text):
                yield from _names_in(ast.parse(text))


def _names_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names of metrics; counters get their ending when they are written."""
    counters = {
        argument.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "CounterMetricFamily"
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(name)) if _NAME.fullmatch(name):
                yield f"{name}_total" if name in counters else name


def _of_processes() -> Iterator[str]:
    for metric in ProcessCollector(registry=None).collect():
        yield from (sample.name for sample in metric.samples)
