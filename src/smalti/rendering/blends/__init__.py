"""The ways in which frames become one picture."""
