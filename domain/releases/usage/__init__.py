"""Which calls consumers make, and which scheduled changes these will feel."""
