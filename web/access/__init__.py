"""Access to views: decorators, tokens, key proofs and rate limits."""
