"""Forms, one file for each page; the domain has the rules."""
