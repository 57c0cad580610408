"""Loads modules that requests need, before the web server forks.

The web processes share the memory of everything that their parent has loaded.
"""

from collections.abc import Iterator
from importlib import import_module

from pydantic import BaseModel

from web.services import load_policies

#: Modules that the service, Python or gevent would import only on first use.
_LAZY_MODULES = (
    "domain.accounts.factors.passkey_ceremonies",
    "encodings.unicode_escape",
    "gevent.fileobject",
    "gevent.threadpool",
)
#: Prefixes of the service's own modules.
_OWN_PREFIXES = ("blueprints.", "domain.", "web.")


def preload_request_modules() -> None:
    """Load modules that requests need, without opening a connection or starting a thread."""
    load_policies()
    for name in _LAZY_MODULES:
        import_module(name)
    for each in _list_subclasses(BaseModel):
        if each.__module__.startswith(_OWN_PREFIXES):
            each.model_rebuild()


def _list_subclasses(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in base.__subclasses__():
        yield each
        yield from _list_subclasses(each)
