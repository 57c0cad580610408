"""HTTP requests to URLs that users configure, with limits on addresses and durations."""
