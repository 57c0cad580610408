"""Tests of the program `gatebell`: working directory, tables, completion and errors."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from flask import Flask

from tests.support.service.commands import operate
from tests.support.service.live import ROOT, LiveGatebell
from web.commands import gatebell

pytestmark = pytest.mark.one_database("sqlite")

#: Commands with which a shell completes `gatebell users cre` with the script.
_COMPLETED = {
    "bash": "COMP_WORDS=(gatebell users cre) COMP_CWORD=2; _gatebell_completion gatebell; "
    'echo "${COMPREPLY[@]}"',
    "fish": "complete --do-complete 'gatebell users cre'",
}


def run_command(app: Flask, *arguments: str) -> tuple[int, str, str]:
    done = app.test_cli_runner().invoke(args=arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.long
def test_the_program_works_from_any_directory_with_relative_file_names(
    tmp_path: Path, live_sqlite: LiveGatebell
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('of somebody else')", encoding="utf-8")
    link = tmp_path / "gatebell"
    link.symlink_to(ROOT / "scripts" / "gatebell")
    done = subprocess.run(
        [link, "registry", "certificates", "--write", "bundle.pem"],
        cwd=tmp_path,
        env=live_sqlite.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"] == "bundle.pem"
    assert (tmp_path / "bundle.pem").exists()


def test_the_help_lists_only_own_commands_and_the_version_is_printed(app: Flask) -> None:
    status, listed, _ = run_command(app, "--help")
    assert status == 0
    assert not {"routes", "run", "shell", "limiter"} & {
        line.split()[0] for line in listed.splitlines() if line.startswith("  ")
    }
    assert run_command(app, "--version")[1].startswith("Gatebell 0.")


def commands_of(group: click.Group, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command below a group."""
    for name in group.list_commands(None):  # type: ignore[arg-type]
        yield (*names, name)
        command = group.get_command(None, name)  # type: ignore[arg-type]
        if isinstance(command, click.Group):
            yield from commands_of(command, *names, name)


@pytest.mark.long
def test_each_command_has_help(app: Flask) -> None:
    for words in commands_of(gatebell):
        status, told, wrong = run_command(app, *words, "--help")
        assert (status, wrong) == (0, ""), words
        assert told.startswith(f"Usage: gatebell {' '.join(words)}"), words


def test_errors_of_arguments_are_one_json_object(app: Flask) -> None:
    for arguments, sentence, help_of in (
        (("userz",), "No such command 'userz'. Did you mean 'users'?", "gatebell"),
        (("users", "create"), "Missing argument 'NAME'.", "gatebell users create"),
        (("tokens", "list", "alice", "--all"), "No such option '--all'.", "gatebell tokens list"),
        (("prune", "--output", "xml"), "'xml' is not one of", "gatebell prune"),
    ):
        status, out, told = run_command(app, *arguments)
        assert (status, out) == (2, "")
        refused = json.loads(told)
        assert sentence in refused["error"]
        assert refused["help"] == f"{help_of} --help"


@pytest.mark.long
def test_an_invalid_setting_is_reported_as_json(live_sqlite: LiveGatebell) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "gatebell", "users", "list"],
        env=live_sqlite.environment | {"PORT": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"].startswith("PORT must be")


def test_a_table_is_aligned_and_contains_no_control_characters(app: Flask) -> None:
    operate(
        app, "users", "create", "alice", "--email", "a@example.org", "--display-name", "愛\u202e"
    )
    operate(app, "users", "create", "bob", "--email", "bob@example.org", "--display-name", "Bob")
    status, shown, _ = run_command(app, "users", "list", "--output", "table")
    assert status == 0
    assert "\u202e" not in shown
    header, bob, alice, *_ = [
        line for line in shown.splitlines() if line.startswith(("ID", "1", "2", "3"))
    ]
    assert header.startswith("ID  USERNAME")
    assert bob.index("bob") == header.index("USERNAME") == alice.index("alice")
    assert "愛\\u202e" in alice
    # The option can also precede the command.
    assert run_command(app, "--output", "table", "users", "list")[1] == shown


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_complete_commands_with_the_script(tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "gatebell").symlink_to(ROOT / "scripts" / "gatebell")
    environment = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    load = (
        f'eval "$(gatebell completion {shell})"'
        if shell == "bash"
        else "gatebell completion fish | source"
    )
    done = subprocess.run(
        [program, "-c", f"{load}; {_COMPLETED[shell]}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split()[:1] == ["create"], done.stderr


def test_zsh_accepts_the_script(app: Flask) -> None:
    program = shutil.which("zsh")
    script = run_command(app, "completion", "zsh")[1]
    assert script.strip().startswith("#compdef gatebell")
    if program is None:
        pytest.skip("zsh is not installed")
    subprocess.run([program, "-n"], input=script, text=True, check=True)


@pytest.mark.long
def test_settings_are_listed_with_their_source(live_sqlite: LiveGatebell) -> None:
    live_sqlite.cli("settings", "set", "refresh_replay_seconds", "20")
    try:
        listed = {each["name"]: each for each in live_sqlite.cli("settings", "list")["settings"]}
        changed = live_sqlite.cli("settings", "list", "--changed")["settings"]
        shown = live_sqlite.cli("settings", "show", "REFRESH_REPLAY_SECONDS")
    finally:
        live_sqlite.cli("settings", "reset", "refresh_replay_seconds")
    assert "REFRESH_REPLAY_SECONDS" in {each["name"] for each in changed}
    assert {each["origin"] for each in changed} == {"changed"}
    origins = {name: listed[name]["origin"] for name in ("TIER", "REFRESH_REPLAY_SECONDS")}
    assert origins == {
        "TIER": "default",
        "REFRESH_REPLAY_SECONDS": "changed",
    }
    written = (shown["name"], shown["value"], shown["origin"])
    assert written == ("REFRESH_REPLAY_SECONDS", "20", "changed")
    assert listed["SECRET_KEY"]["value"] == "set"
