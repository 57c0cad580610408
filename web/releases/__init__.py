"""The release schedule, applied to requests; and the calls that it concerns."""
