"""Flask plumbing: settings, errors, transactions, access, logs; nothing of the product."""
