"""Command-line reference in docs/command-line.md, generated from the commands."""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence

import click

from web.commands import gatebell

#: Commands by topic, in the order of the reference.
TOPICS = {
    "Users, groups and projects": ("users", "groups", "projects", "members", "member-roles"),
    "Applications and tokens": ("applications", "tokens", "keys", "identity-providers"),
    "Alerts and incidents": (
        *("integrations", "deliveries", "alerts", "heartbeats", "incidents", "incident-rules"),
        *("incident-documents", "webhooks"),
    ),
    "On call and paging": (
        *("schedules", "on-call", "absences", "handoff-notes", "reports", "escalations"),
        "alert-routes",
        *("silences", "maintenance-windows", "flap-settings", "contacts", "contact-rules"),
        *("channels", "import"),
    ),
    "Configuration and health": (
        *("doctor", "queues", "settings", "secrets", "mail", "version", "completion"),
    ),
    "Backups, upgrades and cleanup": (
        *("backup", "restore", "repositories", "upgrade-check", "prune"),
    ),
    "Audit log, registry and releases": ("audit", "audit-streams", "registry", "releases"),
}
_INTRODUCTION = """\
# Command line

This page is the reference of the program `gatebell`, for operators. It lists every command with
its arguments, options and defaults. It is generated from the commands by `make docs`.

`gatebell COMMAND` works from any directory. `make run` installs it as `.venv/bin/gatebell`;
`scripts/gatebell` is the same program. Commands use the database in the environment variable
`DATABASE_URL`, also while the service is running. Run them with the environment of the service:
[Install](deployment.md) shows how to do that with systemd and in containers.

## Output and exit status

- Commands print one JSON object. Users, projects, alerts and other resources are printed as the
  [API](api.md) returns them. `completion` and `releases check` print text.
- `--output table`, which every command accepts, prints a table instead. In tables, control
  characters are shown as `\\u…`, so that they cannot change the state of the terminal.
- A list contains at most 1,000 entries. If there are more, the output has `total` or
  `next_cursor`. Use `--page` or `--cursor` to get the next entries.
- On failure, the command prints `{"error": …}` to standard error and exits with status 1. Invalid
  arguments exit with status 2, and `help` in the output names the command that explains them.
- `gatebell COMMAND --help` shows all arguments. `gatebell --version` shows the version and the
  commit.

## Shell completion

- bash: add `eval "$(gatebell completion bash)"` to `~/.bashrc`.
- zsh: add `eval "$(gatebell completion zsh)"` to `~/.zshrc` after `compinit`.
- fish: run `gatebell completion fish > ~/.config/fish/completions/gatebell.fish`.
"""
#: Output of commands that print neither a single API resource nor a list of API resources.
OUTPUT_DESCRIPTIONS = {
    "users create": "the user, and `password` if it was generated",
    "users list": "`users`, and `next`: the value of `--before` for the next page",
    "users verify": "`verified`: number of addresses that were not verified before",
    "users reset-password": "the user with `password`, to be changed at the next sign-in",
    "users remove-second-factors": "`username`, `removed`",
    "users delete": ("`user_id`, `pseudonym`, `applications_handed_on`, `applications_deleted`"),
    "applications create": "the application with `secret`, which is null for a public application",
    "applications renew-secret": "the application with its new `secret`",
    "tokens create": "the token with its value in `token`",
    "keys list": "`keys`: `kid`, `created_at`, `retired_at` of each published key",
    "keys rotate": "`kid` of the new key, and `keys`",
    "identity-providers create": "the provider without its secret, and `redirect_uri`",
    "identity-providers test": "`works`, `problem`, the endpoints, and the number of `keys`",
    "integrations reset-key": "`id`, `url`, and the new `key`",
    "integrations recognize": (
        "`tool`, `type`, `mapping`, `rules`, the `alert` that the message would open, "
        "`questions`, and how `repeat` and `recovery` would be processed"
    ),
    "deliveries replay": (
        "the new deliveries in `replayed`, and rejected deliveries in `still_refused`"
    ),
    "heartbeats reset-url": "`id`, `url`, and how long the old URL is accepted",
    "webhooks create": "the webhook with its `secret`",
    "webhooks rotate": "the webhook with its new `secret`",
    "webhooks test": "`delivered`, `status`, `error`, `duration_ms`, `delivery_id`",
    "audit-streams create": "the destination with its `secret`",
    "audit-streams rotate": "the destination with its new `secret`",
    "audit-streams test": "`delivered`, `status`, `error`, `duration_ms`",
    "contacts test": "`delivered`, `error`",
    "channels test": "`delivered`, `error`",
    "import grafana-oncall": (
        "`summary`, `users`, `schedules`, `policies`, `integrations`, `left_out`"
    ),
    "import opsgenie": "`summary`, `users`, `schedules`, `policies`, `integrations`, `left_out`",
    "doctor": "`state` and `checks`",
    "settings list": "`settings`: `name`, `value`, `origin`, `changeable`, `section`",
    "settings set": "`name`, `value`; after a change of `RELEASE` also `rehearsal`",
    "secrets status": (
        "`keys`, `hosts`, `encrypted_with_older`, `hashed_with_older`, `unreadable`, `next`"
    ),
    "secrets reencrypt": "`reencrypted`, `unreadable`: number of rows of each kind",
    "secrets forget": "`forgotten`: fingerprints of the lost keys",
    "mail test": "`sent_to`, `from`, `server`, or the response of the mail server",
    "mail failure": "`sent_to`",
    "mail status": "`waiting`, `oldest_at`, `failing`, `given_up`",
    "backup": "`directory`, `rows`, `files`, `bytes`, `left_out`, `deleted`, `recorded`",
    "restore": (
        "`restored`, `made_at`, `rows`, `audit_head`, and the paths of replaced files in "
        "`former_database` and `former_files`, or an error if the backup is not intact"
    ),
    "repositories list": "the directory of each repository, by the path of its project",
    "repositories check": "`checked`, `faults`, `orphans`",
    "repositories backup": "`written`, `empty`",
    "repositories restore": "`restored`, `kept`, `missing`",
    "repositories remove-orphans": "`removed`",
    "upgrade-check": "`migration`, `effects`; the exit status is 1 if there are any",
    "prune": "the number of removed rows of each kind",
    "audit verify": "`intact`, `events`, `unsealed`, `seals`, `head`, and `faults`, if any",
    "registry configuration": "`configuration`, `bundle`",
    "registry certificates": "`keys`, and `certificates` or `written`",
    "registry rotate-key": "`kid` of the new key, and `keys`",
    "releases rehearse": (
        "`breaks`, and `changes` with the affected consumers; the exit status is 1 if a call breaks"
    ),
}
_DEFAULT_IN_HELP = re.compile(r" ?\[default: (.+?)\]$")
_SHARED_OPTIONS = frozenset({"--help", "--output"})


def build_command_reference() -> str:
    """Return the text of docs/command-line.md."""
    return _INTRODUCTION + "".join(line + "\n" for line in _format_topics())


def _format_topics() -> Iterator[str]:
    context = click.Context(gatebell, info_name="gatebell")
    for title, names in TOPICS.items():
        yield from ("", f"## {title}")
        for name in names:
            command = gatebell.get_command(context, name)
            assert command is not None, name  # noqa: S101 - a topic names commands that exist
            yield from _format_command(command, f"gatebell {name}", "###")


def _format_command(command: click.Command, path: str, heading: str) -> Iterator[str]:
    yield from ("", f"{heading} {path}", "")
    if isinstance(command, click.Group):
        yield from _format_paragraphs(command)
        for name in sorted(command.commands):
            yield from _format_command(command.commands[name], f"{path} {name}", f"{heading}#")
        return
    context = click.Context(command, info_name=path)
    options = list(_format_options(command, context))
    arguments = [each for each in command.collect_usage_pieces(context) if each != "[OPTIONS]"]
    usage = " ".join([path, *arguments, *(["[OPTIONS]"] if options else [])])
    yield from (f"`{usage}`", "")
    yield from _format_paragraphs(command)
    if output := OUTPUT_DESCRIPTIONS.get(path.removeprefix("gatebell ")):
        yield from ("", f"Output: {output}.")
    yield from options


def _format_paragraphs(command: click.Command) -> Iterator[str]:
    """Yield the help text, with an empty line between paragraphs."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0].replace("\b\n", "")
    paragraphs = [" ".join(each.split()) for each in text.strip().split("\n\n")]
    yield from "\n\n".join(paragraphs).split("\n")


def _format_options(command: click.Command, context: click.Context) -> Iterator[str]:
    rows = [
        _format_option_row(each, context)
        for each in command.get_params(context)
        if isinstance(each, click.Option)
        and _SHARED_OPTIONS.isdisjoint(each.opts)
        and not each.hidden
    ]
    if rows:
        yield from ("", "| option | default | meaning |", "|---|---|---|")
        yield from rows


def _format_option_row(option: click.Option, context: click.Context) -> str:
    words = _format_cell(option.help or "")
    found = _DEFAULT_IN_HELP.search(words)
    default = found[1] if found else _find_default(option, context)
    return (
        f"| {_format_option_names(option, context)} | {default} | "
        f"{_DEFAULT_IN_HELP.sub('', words)} |"
    )


def _format_option_names(option: click.Option, context: click.Context) -> str:
    written = "/".join(
        [*_sort_longest_first(option.opts), *_sort_longest_first(option.secondary_opts)]
    )
    value = "" if option.is_flag else f" {option.make_metavar(context)}".replace(" RANGE", "")
    return f"`{written}{value}`".replace("|", "\\|")


def _sort_longest_first(names: Sequence[str]) -> list[str]:
    return sorted(names, key=len, reverse=True)


def _find_default(option: click.Option, context: click.Context) -> str:
    if option.required:
        return "required"
    found = option.get_default(context)
    is_value = isinstance(found, str | int | float) and not isinstance(found, bool)
    return _format_cell(str(found)) if is_value and found != "" else ""


def _format_cell(text: str) -> str:
    """Format text as a table cell on one line."""
    line = " ".join(text.split())
    return line.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    sys.stdout.write(build_command_reference())
