"""A session with a person: the state behind the page, and the messages that both exchange."""
