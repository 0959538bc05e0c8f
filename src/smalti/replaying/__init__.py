"""A project's answers once more, in the order of other strategies."""
