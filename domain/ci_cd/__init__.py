"""What external CI reports of a project: deployments, statuses of commits, releases."""
