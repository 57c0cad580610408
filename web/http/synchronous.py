"""Flask for an application that has no coroutines."""

from collections.abc import Callable
from typing import Any

from flask import Flask


class SynchronousFlask(Flask):
    """Flask without the check whether each view and hook is a coroutine."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function unchanged."""
        return func
