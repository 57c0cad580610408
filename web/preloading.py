"""Loads before the fork what requests would load at their first use.

The web processes share the memory of what their parent has loaded.
"""

from importlib import import_module

from web.services import load_policies

#: Modules that other modules import only when they are used.
_AT_FIRST_USE = ("domain.accounts.factors.passkey_ceremonies",)


def load_for_requests() -> None:
    """Import what requests need, without opening a connection or starting a thread."""
    load_policies()
    for name in _AT_FIRST_USE:
        import_module(name)
