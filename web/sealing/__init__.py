"""State that travels through a browser: signed or encrypted, for one purpose and a limited time."""
