"""Ends pages that hang, because some calls of Playwright have no timeout.

A tap waits until the page has handled it. If the page is replaced meanwhile, Chromium sometimes
sends no answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import time

import psutil

#: Seconds after which all pages are killed, if the page that hangs was in an older process.
_MORE_SECONDS = 60


@contextmanager
def end_hung_pages(seconds: float) -> Iterator[None]:
    """Kill the pages that were opened in the block if the block takes longer than this.

    The call that waits for such a page then raises playwright.sync_api.Error.
    """
    timers = [
        Timer(seconds, _kill_pages, (time() - 1,)),
        Timer(seconds + _MORE_SECONDS, _kill_pages, (0,)),
    ]
    for each in timers:
        each.daemon = True
        each.start()
    try:
        yield
    finally:
        for each in timers:
            each.cancel()


def _kill_pages(since: float) -> None:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            is_page = "--type=renderer" in " ".join(process.cmdline())
            if is_page and process.create_time() >= since:
                process.kill()
