"""Reports that external CI sends for a project: deployments, commit statuses and releases."""
