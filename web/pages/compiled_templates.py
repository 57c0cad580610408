"""Compiled templates, kept on disk beside Python's own bytecode.

A process then loads a template where it would compile it, which takes up to 30 ms.
"""

import sys
from contextlib import suppress
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket


class CompiledTemplates(FileSystemBytecodeCache):
    """Keeps the code of templates; what cannot be kept is compiled again by the next process."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template, if the directory can be written to."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def compiled_templates(root: Path) -> CompiledTemplates | None:
    """Return what is kept for the application in this directory; None if nothing can be."""
    if sys.dont_write_bytecode:
        return None
    directory = root / "__pycache__" / "templates"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return CompiledTemplates(str(directory))
