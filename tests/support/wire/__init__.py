"""Every address with its parameters, forms of pages, and values that nobody expects."""
