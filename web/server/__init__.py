"""Server programs: web server, supervisor, start checks and shared counters."""
