"""Git's own client, and repositories for it."""
