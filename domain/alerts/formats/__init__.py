"""The formats in which alerts arrive, each declared in a file, and the registry of all."""
