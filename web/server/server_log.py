"""The web server's own log: what went wrong, and nothing of each request."""

from gunicorn.glogging import Logger


class ServerLog(Logger):  # type: ignore[misc]
    """Gunicorn's log without requests: the app logs those (web/http/request_log.py).

    With a configuration of logs gunicorn would put one together each time, for nobody to read:
    that takes as long as looking up a token.
    """

    @property
    def access_log_enabled(self) -> bool:
        """Whether there are such lines: no."""
        return False
