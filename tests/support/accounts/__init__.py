"""Alice, Bob and Charlie, their roles, projects, applications and access tokens."""
