"""Flask for an application that has no coroutines."""

from collections.abc import Callable
from typing import Any

from flask import Flask


class SynchronousFlask(Flask):
    """Flask that does not ask each view and each hook of each request whether it is a coroutine."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as it is."""
        return func
