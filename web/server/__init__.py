"""The programs: web server, supervisor, start checks, shared counters."""
