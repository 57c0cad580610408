"""The release schedule: changes of interfaces by release, and what they affect."""
