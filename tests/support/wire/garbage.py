"""Values that nobody thought of, and how many of them are tried.

`make test` tries a few of each; `make properties` tries many (the profile "fuzz" of
tests/conftest.py).
"""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Test = TypeVar("Test", bound=Callable[..., object])
#: What the profiles' numbers of examples are measured by.
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
#: One of each class, where many parameters are to hold each of them.
FEW_NASTY = (
    *("", "a\x00b", "🔔", "\ufffe", "' OR 1=1 --", "%s%n", "{{7*7}}", "<script>alert(1)</script>"),
    *("\r\nX-Injected: y", "[]", "9" * 40, "a" * 1500),
)
#: A lone surrogate cannot be sent as UTF-8; everything else can.
TEXT = st.sampled_from(NASTY) | st.text(st.characters(codec="utf-8"), max_size=200)


def bounded(examples: int) -> Callable[[Test], Test]:
    """Try so many examples, and as many times more as the profile wants.

    The live services are shared: Hypothesis may use them again and again. How long an example
    takes says nothing on a machine that has other things to do.
    """
    return settings(
        max_examples=examples * settings().max_examples // USUAL_EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
