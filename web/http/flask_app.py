"""Flask application that does not support coroutines, and can relay heavy requests."""

from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Any

from flask import Flask, Request, Response
from flask.globals import request_ctx
from werkzeug.datastructures import HeaderSet
from werkzeug.routing import MapAdapter

from web.http.endpoints import START_TIME_KEY, is_heavy_request
from web.http.request_log import store_request_start
from web.http.url_converters import list_existing_methods


class SynchronousFlask(Flask):
    """Flask application that does not check whether views and hooks are coroutines.

    Responses to OPTIONS list only the methods that exist at the path.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """Store Flask's arguments, and start without a relay for heavy requests."""
        super().__init__(*args, **options)
        #: URL adapters by scheme, host and base path.
        self._url_adapters: dict[tuple[str, str | None, str], MapAdapter] = {}
        #: Function that passes heavy requests to another process. The web server sets it in web
        #: processes.
        self.relay: Callable[[dict[str, Any]], Any] | None = None

    def full_dispatch_request(self) -> Response:
        """Return the response to the request. Heavy requests are handled by another process."""
        if self.relay is None or not is_heavy_request():
            return super().full_dispatch_request()
        environ = request_ctx.request.environ
        environ[START_TIME_KEY] = perf_counter()
        try:
            response: Response = self.relay(environ)
        except Exception as error:  # noqa: BLE001 - as in Flask, every error gets a response
            store_request_start()
            return self.finalize_request(self.handle_user_exception(error))
        return response

    def handle_relayed_request(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Handle a relayed request, whose environment has already passed the middlewares."""
        return super().wsgi_app(environ, start_response)

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function unchanged."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Return the URL adapter of a request, copied from an earlier adapter for the same host.

        Flask would check and encode the host each time, although every request has the host of
        BASE_URL.
        """
        if request is None or "HTTP_UPGRADE" in request.environ:
            return super().create_url_adapter(request)
        host = request.scheme, request.environ.get("HTTP_HOST"), request.root_path
        like = self._url_adapters.get(host)
        if like is None:
            like = super().create_url_adapter(request)
            if like is not None:
                self._url_adapters[host] = like
            return like
        return MapAdapter(
            self.url_map,
            like.server_name,
            like.script_name,
            like.subdomain,
            like.url_scheme,
            request.path,
            request.method,
            request.query_string.decode(errors="replace"),
        )

    def log_exception(
        self,
        exc_info: tuple[type, BaseException, TracebackType] | tuple[None, None, None],
        *args: object,
    ) -> None:
        """Log nothing, because the error handlers in `web/http/errors.py` log errors."""

    def make_default_options_response(self) -> Response:
        """Return the response to OPTIONS, which lists only the methods that exist at the path."""
        response = super().make_default_options_response()
        response.allow = HeaderSet(list_existing_methods(response.allow))
        return response
