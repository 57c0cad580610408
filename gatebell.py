"""Command line `gatebell`, which scripts/gatebell starts from any directory."""

import atexit
import gc

from flask import Flask
from flask.cli import ScriptInfo

from web.commands import gatebell
from web.memory import keep_what_is_loaded, without_collecting


def _load_app() -> Flask:
    with without_collecting():
        from web.commands.application import create_command_app  # noqa: PLC0415 - help needs none

        app = create_command_app()
    keep_what_is_loaded()
    return app


if __name__ == "__main__":
    # The interpreter collects garbage several times at exit, even after help and completion.
    atexit.register(gc.freeze)
    gatebell.main(obj=ScriptInfo(create_app=_load_app, set_debug_flag=False))
