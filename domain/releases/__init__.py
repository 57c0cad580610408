"""The release schedule: which interfaces change in which release, and what that concerns."""
