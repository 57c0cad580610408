"""The release schedule, applied to requests."""
