"""Flask infrastructure such as settings, errors, transactions, access and logs.

It contains no product rules.
"""
