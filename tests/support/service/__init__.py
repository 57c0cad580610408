"""The service as a program, its settings and commands, and what may stand before it."""
