"""Unusual values, and the number of examples that are tried.

`make test` tries a few of each; `make properties` tries many (the profile "fuzz" of
tests/conftest.py).
"""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Test = TypeVar("Test", bound=Callable[..., object])
#: Usual number of examples, which profiles are relative to.
USUAL_EXAMPLES = 100
FUZZ_EXAMPLES = 3000
NASTY = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "é",
    "🔔",
    "\u202e",
    "\ufffe",
    "'",
    '"',
    "' OR 1=1 --",
    '"; DROP TABLE users; --',
    "\\",
    "%",
    "%s%n",
    "{{7*7}}",
    "{0.__class__}",
    "${jndi:x}",
    "<script>alert(1)</script>",
    "\r\nX-Injected: y",
    "[]",
    "null",
    "-1",
    "9" * 40,
    "1e400",
    "a" * 1500,
)
#: One value of each class, for tests of many parameters.
FEW_NASTY = (
    *("", "a\x00b", "🔔", "\ufffe", "' OR 1=1 --", "%s%n", "{{7*7}}", "<script>alert(1)</script>"),
    *("\r\nX-Injected: y", "[]", "9" * 40, "a" * 1500),
)
#: Texts without lone surrogates, which UTF-8 cannot encode.
TEXT = st.sampled_from(NASTY) | st.text(st.characters(codec="utf-8"), max_size=200)


def bounded(examples: int) -> Callable[[Test], Test]:
    """Limit the number of examples, multiplied as in the current profile.

    Live services are shared, so Hypothesis may use them repeatedly. Duration does not matter,
    because the machine may be busy.
    """
    return settings(
        max_examples=examples * settings().max_examples // USUAL_EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
