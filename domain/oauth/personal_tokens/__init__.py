"""Personal, project and group access tokens."""
