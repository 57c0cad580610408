"""Application of the release schedule to requests, and records of affected calls."""
