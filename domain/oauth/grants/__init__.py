"""The grants, one file each."""
