"""Reads what other on-call tools export, into plans of what is to be created here."""
