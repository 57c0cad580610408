"""Usage of the API: counted calls of consumers, and scheduled changes that affect them."""
