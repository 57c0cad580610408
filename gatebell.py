"""The command line `gatebell`, which scripts/gatebell starts from any directory."""

from flask import Flask
from flask.cli import ScriptInfo

from web.commands import gatebell
from web.memory import without_collecting


def _load_app() -> Flask:
    with without_collecting():
        from app import create_app  # noqa: PLC0415 - help and completion need no application

        return create_app()


if __name__ == "__main__":
    gatebell.main(obj=ScriptInfo(create_app=_load_app, set_debug_flag=False))
