"""Heartbeats: the URLs that jobs request, and the pages about them."""
