"""One file per grant; each holds only what is its own."""
