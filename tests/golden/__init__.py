"""Records the responses of a checkout on all interfaces, and compares recordings (`record.py`)."""
