"""The release schedule: changes to interfaces by release, and the calls that they affect."""
