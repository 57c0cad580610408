"""Pages for contacts and channels, and for the links in messages."""
