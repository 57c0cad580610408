"""Title of a process, which `ps` shows as its command."""

import ctypes
from contextlib import suppress
from pathlib import Path

#: Positions of the first and last address of the arguments in /proc/self/stat, counted after the
#: name of the program.
_START_FIELD, _END_FIELD = 45, 46


def set_process_title(*arguments: str) -> None:
    """Show other arguments of the interpreter in the title of this forked process.

    The title is truncated to the length of the current title. Only Linux supports this.
    """
    with suppress(OSError, ValueError, IndexError):
        interpreter = Path("/proc/self/cmdline").read_bytes().partition(b"\0")[0]
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        start, end = int(fields[_START_FIELD]), int(fields[_END_FIELD])
        title = b"\0".join((interpreter, *map(str.encode, arguments)))[: end - start - 1]
        if start:
            ctypes.memmove(start, title.ljust(end - start, b"\0"), end - start)
