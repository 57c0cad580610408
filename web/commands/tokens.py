"""Commands for personal access tokens."""

from flask.cli import AppGroup

from domain.oauth.personal_tokens import actions
from web.commands.action_commands import build_command

tokens = AppGroup("tokens", help="Manage personal access tokens.")
tokens.add_command(build_command(actions.create_own_token, is_for_user=True))
tokens.add_command(build_command(actions.list_tokens, is_for_user=True, key="tokens"))
tokens.add_command(build_command(actions.show_token))
tokens.add_command(build_command(actions.revoke_token))
