"""Reports of external CI for a project: deployments, commit statuses and releases."""
