"""Requests and responses: access, errors, transactions, CORS, headers, bodies, logs."""
