"""Agents: who answers a question about a pair of frames."""
