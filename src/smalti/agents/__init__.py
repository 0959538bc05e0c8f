"""Agents: they answer questions about pairs of frames."""
