"""The command that checks an installation for problems."""
