"""Who may call a view, and how often: marks, tokens, key proofs, rate limits."""
