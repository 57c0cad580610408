"""What pages, API and commands do with heartbeats, and how a ping is received."""
