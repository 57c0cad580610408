"""Thread pools for work that would block the event loop of a web process.

A web process serves all its requests as greenlets in one thread. Work that computes for more than a
few milliseconds, or waits for a disk or a lock, runs in a thread pool. The command line and the
background worker have no greenlets, and run such work directly.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_UN, lockf
from functools import cached_property, partial
from os import PRIO_PROCESS, setpriority
from threading import get_native_id
from typing import Any, ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Outcome = TypeVar("Outcome")


def is_web_process() -> bool:
    """Return whether this process is a web process."""
    monkey = sys.modules.get("gevent.monkey")
    return bool(monkey and monkey.is_module_patched("threading"))


class ThreadExecutor:
    """A pool of threads. Tasks wait if all threads are busy."""

    def __init__(self, *, threads: int, niceness: int = 0) -> None:
        """Set the size of the pool.

        The first task starts the pool, since threads do not survive a fork. A higher `niceness`
        leaves more processor time to the threads that serve requests.
        """
        self._threads = threads
        self._niceness = niceness

    def run_task(
        self, work: Callable[Given, Outcome], *args: Given.args, **kwargs: Given.kwargs
    ) -> Outcome:
        """Run a function in the pool, and return its result or raise its error."""
        return self.run_interruptibly(partial(work, *args, **kwargs), stop=None)

    def run_interruptibly(
        self, work: Callable[[], Outcome], stop: Callable[[], None] | None
    ) -> Outcome:
        """Run a function in the pool, and return its result or raise its error.

        If the caller is interrupted, call `stop` and wait until the function ends.
        """
        if self._pool is None:
            return work()
        pending = self._pool.spawn(self._run_task, work)
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

    def _run_task(self, work: Callable[[], Outcome]) -> tuple[Outcome | None, Exception | None]:
        """Run a function, and return its result or its error.

        The error is not raised here, since gevent would log it.
        """
        if self._niceness:
            with suppress(OSError):  # Threads that this thread starts inherit its niceness.
                setpriority(PRIO_PROCESS, get_native_id(), self._niceness)
        try:
            return work(), None
        except Exception as error:  # noqa: BLE001 - run_interruptibly raises it
            return None, error

    @cached_property
    def _pool(self) -> Any:
        """The thread pool of a web process, or None in other processes."""
        if not is_web_process():
            return None
        from gevent.threadpool import ThreadPool  # noqa: PLC0415 - only web processes use gevent

        return ThreadPool(self._threads)


class HostLimitedExecutor(ThreadExecutor):
    """A pool that also limits concurrent tasks across all web processes of a host."""

    #: Inherited descriptor of a file that contains one lockable byte per concurrent task.
    _turns: int | None = None
    _most = 1

    def limit_host_concurrency(self, maximum: int) -> None:
        """Limit the concurrent tasks in all processes that are forked from this process."""
        if self._turns is None and hasattr(os, "memfd_create"):
            self._turns, self._most = os.memfd_create("gatebell-turns"), maximum

    def _run_task(self, work: Callable[[], Outcome]) -> tuple[Outcome | None, Exception | None]:
        """Wait for a lock that the web processes of the host share, then run a function.

        If the process is killed, the operating system releases the lock.
        """
        if self._turns is None:
            return super()._run_task(work)
        turn = os.getpid() % self._most
        lockf(self._turns, LOCK_EX, 1, turn)
        try:
            return super()._run_task(work)
        finally:
            lockf(self._turns, LOCK_UN, 1, turn)


#: Number of threads for one password hash.
HASHING_LANES = 4
#: Pool for password hashes, each of which uses several threads. A process computes one hash at a
#: time, which leaves processor time to requests. A higher niceness would make sign-ins take seconds
#: on a busy host. Each hash uses PASSWORD_HASH_MEMORY_KIB of memory, so a host computes only as
#: many hashes at a time as its processors can run.
hashing_pool = HostLimitedExecutor(threads=1, niceness=10)
#: Pool for rendering READMEs, which may be crafted to render slowly.
rendering_pool = ThreadExecutor(threads=1, niceness=10)
#: Pool for the release checker, which accepts large files from anyone.
checking_pool = ThreadExecutor(threads=1, niceness=10)
#: Pool for parsing, decompressing and compressing long texts, and for checking passwords.
parsing_pool = ThreadExecutor(threads=2)
