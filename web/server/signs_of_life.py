"""Signs of life that a supervised program sends, by systemd's protocol (sd_notify(3)).

The socket has a name that the kernel chose, and the kernel says which process sent a message.
"""

import socket
import struct
from collections.abc import Iterator

#: A message is a few words.
_LONGEST_MESSAGE = 4_096
#: Process, user and group of the sender.
_CREDENTIALS = struct.Struct("3i")


class NotifySocket:
    """Where a supervisor receives the signs of life of its programs."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind("")

    @property
    def address(self) -> str:
        """The value of NOTIFY_SOCKET for the programs."""
        return f"@{self._socket.getsockname()[1:].decode()}"

    def senders(self) -> set[int]:
        """Return the processes that have sent something since the last call."""
        return set(self._received())

    def close(self) -> None:
        """Receive no more."""
        self._socket.close()

    def _received(self) -> Iterator[int]:
        while True:
            try:
                _, extra, _, _ = self._socket.recvmsg(
                    _LONGEST_MESSAGE, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except BlockingIOError:
                return
            for level, kind, value in extra:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                    yield _CREDENTIALS.unpack(value)[0]
