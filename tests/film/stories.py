"""Stories made from nothing but maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smalti.film.film_story import State, Story
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Pair


def tell(states: Sequence[np.ndarray], *, width: int = 80, height: int = 60, placed: Sequence | None = None) -> Story:
    """A story of states, each the maps (n, 3, 3) of its frames; the answers between tell of frames 0 and 1."""
    last = len(states) - 1
    made = []
    for n, maps in enumerate(states):
        is_placed = np.ones(len(maps), dtype=bool) if placed is None else np.array(placed[n])
        newest = Pair(0, 1) if 0 < n < last else None
        made.append(State(np.array(maps), is_placed, min(n, last - 1), newest, 100.0 / (n + 1)))
    return Story(tuple(range(len(states[0]))), Lens(Outline.of_pixels(width, height)), last - 1, tuple(made))
