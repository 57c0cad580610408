"""The service as a program, its settings and commands, and proxies in front of it."""
