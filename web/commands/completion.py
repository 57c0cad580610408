"""The command that prints what shells complete our commands with."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")
_NAME, _VARIABLE = "gatebell", "_GATEBELL_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    For bash, `eval "$(gatebell completion bash)"` in ~/.bashrc; for zsh the same with zsh in
    ~/.zshrc after compinit; for fish,
    `gatebell completion fish > ~/.config/fish/completions/gatebell.fish`.
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click knows all three
    click.echo(found(context.find_root().command, {}, _NAME, _VARIABLE).source())
