"""Work that takes long, done where it keeps nobody waiting.

A web process serves all its requests in one thread, in greenlets that take turns wherever one waits
for the network. What computes for more than a few milliseconds, or waits for a disk or a lock, has
to be done in a thread of its own. Everywhere else (the command line, the background worker) there
are no greenlets, and it is done at once.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from os import PRIO_PROCESS, setpriority
from threading import get_native_id
from typing import Any, ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Outcome = TypeVar("Outcome")


def serves_in_greenlets() -> bool:
    """Tell whether this process is a web process."""
    monkey = sys.modules.get("gevent.monkey")
    return bool(monkey and monkey.is_module_patched("threading"))


class Aside:
    """So many threads; what finds none free waits for one."""

    def __init__(self, *, threads: int, niceness: int = 0) -> None:
        """Start them when there is work: a process that divides must have none.

        The nicer they are, the more of the processors they leave to those who serve.
        """
        self._threads = threads
        self._niceness = niceness

    def run(
        self, work: Callable[Given, Outcome], *args: Given.args, **kwargs: Given.kwargs
    ) -> Outcome:
        """Do the work, and return what it returns or raise what it raises."""
        return self.run_or_stop(partial(work, *args, **kwargs), stop=None)

    def run_or_stop(self, work: Callable[[], Outcome], stop: Callable[[], None] | None) -> Outcome:
        """Do the work; if whoever wants it may wait no longer, stop it, and wait for that."""
        if not serves_in_greenlets():
            return work()
        pending = self._pool.spawn(self._do, work)
        try:
            outcome, error = pending.get()
        except BaseException:
            if stop and not pending.ready():
                stop()
                pending.wait()
            raise
        if error is not None:
            raise error
        return cast("Outcome", outcome)

    def _do(self, work: Callable[[], Outcome]) -> tuple[Outcome | None, Exception | None]:
        """Return what came of the work; gevent would write an error down, raised as it is later."""
        if self._niceness:
            with suppress(OSError):  # of this thread, and of those that it starts
                setpriority(PRIO_PROCESS, get_native_id(), self._niceness)
        try:
            return work(), None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it matters
            return None, error

    @cached_property
    def _pool(self) -> Any:
        from gevent.threadpool import ThreadPool  # noqa: PLC0415 - only web processes have it

        return ThreadPool(self._threads)


#: Hashes of passwords, and keys.
hashing = Aside(threads=2, niceness=10)
#: Long texts that are read, unpacked and judged.
reading = Aside(threads=2)
