"""Compares the parser of matchers with Alertmanager's own amtool, which has the classic syntax."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.matching.matcher_parser import parse_matchers
from domain.alerts.matching.matcher_syntax import matches_all_labels
from domain.core.errors import InvalidError
from tests.support.alerts.monitoring import PROGRAMS, is_installed
from tests.support.wire.garbage import bounded

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="scripts/ensure-monitoring could not fetch it"
)

LABELS = {"a": "b", "ab": "a", "x": "b a", "empty": ""}
VALUES = st.text('ab" \\,={}~!n.*|[', max_size=6) | st.sampled_from(["b", '"b"', '"b|c"', '".*"'])
MATCHERS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["a", "ab", "x", "missing", " a ", "a-b", "{a", ""]),
    st.sampled_from(["=", "!=", "=~", "!~", " = ", "~", "=="]),
    VALUES,
)
TEXTS = st.builds("{}{}{}".format, st.sampled_from(["", "{"]), MATCHERS, st.sampled_from(["", "}"]))


def judged(text: str, directory: Path) -> bool | None:
    """Return whether amtool's matchers match the labels, or None if it rejects them."""
    route = {"receiver": "yes", "matchers": [text]}
    configuration = {
        "route": {"receiver": "no", "routes": [route]},
        "receivers": [{"name": "yes"}, {"name": "no"}],
    }
    file = directory / "alertmanager.yml"
    # JSON is valid YAML.
    file.write_text(json.dumps(configuration), encoding="utf-8")
    labels = [f"{name}={value}" for name, value in LABELS.items()]
    done = subprocess.run(
        [str(PROGRAMS / "amtool"), "config", "routes", "test", f"--config.file={file}", *labels],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    # Newer releases print warnings before the name of the receiver.
    return None if done.returncode else done.stdout.splitlines()[-1] == "yes"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("amtool")


@bounded(30)
@given(text=TEXTS | st.builds("{},{}".format, TEXTS, TEXTS))
def test_matchers_that_amtool_accepts_match_the_same_alerts(directory: Path, text: str) -> None:
    expected = judged(text, directory)
    try:
        found = matches_all_labels(parse_matchers(text), LABELS)
    except InvalidError:
        assert expected is None
    else:
        # The UTF-8 syntax accepts more than an older amtool knows.
        assert expected in {None, found}
