"""Schemathesis sends valid and invalid requests according to the OpenAPI description.

It reports undescribed statuses, headers, media types and fields. It also reports responses with
5xx, methods that are rejected in a wrong way, and successful requests without a token.
"""

import json
from pathlib import Path
from random import SystemRandom

import hypothesis
import pytest

from tests.conftest import KINDS
from tests.support.described.instance import SETTINGS, furnish
from tests.support.described.schemathesis import Budget, run_schemathesis
from tests.support.service.live import NewService, running
from tests.support.wire.garbage import FUZZ_EXAMPLES

pytestmark = pytest.mark.hypothesis

#: The same few requests each time.
_SMALL = {
    "sqlite": Budget(phases=("fuzzing",), examples=1),
    "postgres": Budget(phases=("fuzzing",), examples=1),
}
#: Percentage of operations that must have succeeded at least once.
_LEAST_DONE = 60


def budget(kind: str) -> Budget:
    """Return the budget: `make properties` tries all edge cases and random requests."""
    if hypothesis.settings().max_examples < FUZZ_EXAMPLES:
        return _SMALL[kind]
    seed = SystemRandom().randrange(2**31)
    phases = ("coverage", "fuzzing", "stateful")
    return Budget(phases=phases, examples=200, seed=seed, seconds=1800)


def done_routes(log: str) -> tuple[set[str], set[str]]:
    """Return all requested routes, and the routes with a successful response."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    asked = {
        (f"{each['method']} {each['route']}", each["status"]) for each in lines if "route" in each
    }
    return {route for route, _ in asked}, {route for route, status in asked if status < 300}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_schemathesis_finds_no_deviations(
    new_service: NewService, kind: str, tmp_path: Path
) -> None:
    with running(new_service(kind, only="web", **SETTINGS)) as live:
        done = run_schemathesis(furnish(live), budget(kind), tmp_path)
        asked, answered = done_routes(live.log_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert 100 * len(answered) > _LEAST_DONE * len(asked), sorted(asked - answered)
