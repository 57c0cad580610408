"""HTTP requests to URLs that people choose: where they may go, how long they take, what failed."""
