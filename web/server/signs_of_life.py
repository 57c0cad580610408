"""Signs of life that a supervised program sends, by systemd's protocol (sd_notify(3))."""

import socket
from pathlib import Path
from tempfile import TemporaryDirectory

#: A message is a few words.
_LONGEST_MESSAGE = 4_096


class NotifySocket:
    """Where a supervisor receives the signs of life of one program.

    The directory around it lets no other user of the machine send any.
    """

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="gatebell-")
        #: The value of NOTIFY_SOCKET for the program.
        self.address = str(Path(self._directory.name) / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        self._socket.bind(self.address)

    def has_received(self) -> bool:
        """Return whether something was sent since the last call."""
        received = False
        try:
            while True:
                self._socket.recv(_LONGEST_MESSAGE)
                received = True
        except BlockingIOError:
            return received

    def close(self) -> None:
        """Receive no more."""
        self._socket.close()
        self._directory.cleanup()
