"""The web server's worker, with less patience than it has in service."""

from web.server_worker import StayingWorker


class HastyWorker(StayingWorker):
    """Gives up on slow clients within a test's time."""

    request_seconds = 0.5
    piece_seconds = 1
