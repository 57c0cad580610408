"""Loads what requests need before the web server forks.

The web processes share the memory of everything that their parent has loaded.
"""

from collections.abc import Iterator
from importlib import import_module

from pydantic import BaseModel

from web.services import load_policies

#: Modules that other modules, including Python's and gevent's, only import when they use them.
_AT_FIRST_USE = (
    "domain.accounts.factors.passkey_ceremonies",
    "encodings.unicode_escape",
    "gevent.fileobject",
    "gevent.threadpool",
)
#: Prefixes of our own modules.
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
