"""The documents of `docs/` as pages below /help."""
