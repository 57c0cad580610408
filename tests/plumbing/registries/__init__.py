"""Things that nobody has heard of, added to a registry by one line."""
