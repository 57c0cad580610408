"""The container registry: who may do what there, what it says, and what is deleted in it."""
