"""The programs that share a database: the hosts that run, and whose turn a periodic job is."""
