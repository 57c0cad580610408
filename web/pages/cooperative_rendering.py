"""Cooperative rendering of pages, which lets other requests run in between."""

from time import monotonic, sleep
from typing import Any

from flask import has_request_context, request
from jinja2 import Template

#: Seconds of rendering after which other requests can run. A list takes twenty times as long.
_MAX_TURN_SECONDS = 0.001
#: HTTP methods for which rendering is interrupted. Requests with other methods may hold SQLite's
#: write lock until they end.
_READ_METHODS = frozenset({"GET", "HEAD"})


class CooperativeTemplate(Template):
    """Template that lets other requests of the process run while it is rendered.

    A greenlet blocks all other greenlets while it computes. Without pauses, a fast request such as
    a token check would have to wait until a large page has been rendered.
    """

    def render(self, *args: Any, **kwargs: Any) -> str:
        """Return the rendered text.

        The arguments are the same as for `dict`.
        """
        if not has_request_context() or request.method not in _READ_METHODS:
            return super().render(*args, **kwargs)
        pieces = []
        since = monotonic()
        for piece in self.generate(*args, **kwargs):
            pieces.append(piece)
            if monotonic() - since >= _MAX_TURN_SECONDS:
                sleep(0)  # in web processes, gevent's sleep switches to other greenlets
                since = monotonic()
        return "".join(pieces)
