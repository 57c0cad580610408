"""Flask infrastructure: settings, errors, transactions, access, logs; no product rules."""
