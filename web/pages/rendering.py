"""How pages are rendered: in turns."""

from time import monotonic, sleep
from typing import Any

from flask import has_request_context, request
from jinja2 import Template

#: A page of a list takes twenty times as long.
_TURN_SECONDS = 0.001
#: Others may have SQLite's one write lock until they are answered: they give no turns.
_READING = frozenset({"GET", "HEAD"})


class SharingTemplate(Template):
    """A template that lets other requests of the process have their turn while it is rendered.

    A greenlet that computes keeps all others waiting: beside people who search in alerts, a token
    check would take as long as one of their pages.
    """

    def render(self, *args: Any, **kwargs: Any) -> str:
        """Return the text; arguments as for a dictionary."""
        if not has_request_context() or request.method not in _READING:
            return super().render(*args, **kwargs)
        pieces = []
        since = monotonic()
        for piece in self.generate(*args, **kwargs):
            pieces.append(piece)
            if monotonic() - since >= _TURN_SECONDS:
                sleep(0)  # of gevent, in web processes
                since = monotonic()
        return "".join(pieces)
