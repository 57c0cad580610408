"""The web server's logger, without access log."""

from gunicorn.glogging import Logger


class ServerLog(Logger):  # type: ignore[misc]
    """Gunicorn's logger without access log: the app logs requests (web/http/request_log.py).

    With a logging configuration gunicorn would format an unused line for each request, which takes
    as long as a token look-up.
    """

    @property
    def access_log_enabled(self) -> bool:
        """Always False."""
        return False
