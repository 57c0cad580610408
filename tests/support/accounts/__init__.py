"""Users, roles, projects, applications and access tokens."""
