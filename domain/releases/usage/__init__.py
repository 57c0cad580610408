"""Usage of the API: counted calls by consumers, and scheduled changes that affect the calls."""
