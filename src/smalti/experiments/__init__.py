"""Experiments of which the truth is known: synthetic worlds, a real sequence, studies, figures."""
