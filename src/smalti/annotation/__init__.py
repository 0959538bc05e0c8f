"""A person answers: the session behind the page, and the messages that it exchanges."""
