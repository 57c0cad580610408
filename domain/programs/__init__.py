"""The programs that share a database: running hosts, and turns of periodic jobs."""
