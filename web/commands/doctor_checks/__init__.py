"""The checks of `gatebell doctor`, a file for each thing that is looked at."""
