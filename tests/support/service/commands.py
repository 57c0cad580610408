"""Commands of the operator in an app of this process."""

from typing import Any

from flask import Flask


def operate(app: Flask, *arguments: str) -> dict[str, Any]:
    """Run `gatebell …` and return the object that it prints."""
    done = app.test_cli_runner().invoke(args=arguments)
    assert done.exit_code == 0, done.output or repr(done.exception)
    made = app.json.loads(done.stdout)
    assert isinstance(made, dict)
    return made
