"""Synthetic endoscopic video: a hand-held scope over deforming tissue."""
