"""Forms of the pages, with a module for each subject. The rules are in the domain."""
