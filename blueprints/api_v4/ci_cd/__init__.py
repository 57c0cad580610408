"""Environments, deployments, and the statuses of commits."""
