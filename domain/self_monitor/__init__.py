"""The self-monitor: a synthetic alert goes the whole way, from the public URL to the page."""
