"""Handling of requests and responses: errors, transactions, CORS, headers, bodies and logs."""
