"""Templates that are compiled once for all apps of a process."""

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket


class KeptTemplates(BytecodeCache):
    """Keeps the code of templates in memory; it is that of another text when a template changes."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Hand out what was kept for the template."""
        if kept := self._kept.get(bucket.key):
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        self._kept[bucket.key] = bucket.bytecode_to_string()
