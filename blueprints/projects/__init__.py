"""Pages for groups and projects, their members, environments and access tokens."""
