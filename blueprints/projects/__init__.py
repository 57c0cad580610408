"""Groups and projects, their members, environments and access tokens."""
