"""Loads before the fork what requests would load at their first use.

The web processes share the memory of what their parent has loaded.
"""

from collections.abc import Iterator
from importlib import import_module

from pydantic import BaseModel

from web.services import load_policies

#: Modules that others, also those of Python and gevent, import only when they are used.
_AT_FIRST_USE = (
    "domain.accounts.factors.passkey_ceremonies",
    "encodings.unicode_escape",
    "gevent.fileobject",
    "gevent.threadpool",
)
#: Packages with types of our own.
_OURS = ("blueprints.", "domain.", "web.")


def load_for_requests() -> None:
    """Load what requests need, without opening a connection or starting a thread."""
    load_policies()
    for name in _AT_FIRST_USE:
        import_module(name)
    for each in _types_below(BaseModel):
        if each.__module__.startswith(_OURS):
            each.model_rebuild()


def _types_below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in base.__subclasses__():
        yield each
        yield from _types_below(each)
