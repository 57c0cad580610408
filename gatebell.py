"""The `gatebell` command line, which scripts/gatebell starts from any directory."""

import atexit
import gc

from flask import Flask
from flask.cli import ScriptInfo

from web.commands import gatebell
from web.memory import freeze_loaded_objects, suspend_garbage_collection


def _load_app() -> Flask:
    with suspend_garbage_collection():
        from web.commands.flask_app import create_command_app  # noqa: PLC0415 - help needs none

        app = create_command_app()
    freeze_loaded_objects()
    return app


if __name__ == "__main__":
    # The interpreter collects garbage several times at exit, even after help and completion.
    atexit.register(gc.freeze)
    gatebell.main(obj=ScriptInfo(create_app=_load_app, set_debug_flag=False))
