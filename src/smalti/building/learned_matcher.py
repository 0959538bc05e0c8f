"""Learned keypoints of a project's frames, computed when they are asked for, and the agent that matches them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.agents.matcher import KeypointAgent
from smalti.errors import InputError
from smalti.geometry.outline import Outline
from smalti.project.array_cache import Cache
from smalti.registration.keypoints import NO_KEYPOINTS, Keypoints
from smalti.registration.learned_keypoints import LEARNED_FIT, LEARNED_MATCHES, find_learned_keypoints

GrayReader = Callable[[int], tuple[NDArray[np.uint8], NDArray[np.bool_] | None]]
"""Returns a frame in gray (h, w), and its valid pixels."""


class LearnedKeypoints:
    """The learned keypoints of frames; what was computed is kept in the folder `learned` of the cache."""

    def __init__(self, cache: Path, read_gray: GrayReader, weights: Path) -> None:
        self._cache = Cache(cache / "learned")
        self._cache.find_again = self._find
        self._read_gray = read_gray
        self._weights = weights

    def of(self, frame: int) -> Keypoints:
        """Return the learned keypoints of a frame."""
        if not self._cache.has_keypoints(frame):
            self._cache.keep_keypoints(frame, self._find(frame))
        return self._cache.keypoints(frame)

    def _find(self, frame: int) -> Keypoints:
        try:
            gray, mask = self._read_gray(frame)
        except InputError:  # it cannot be decoded
            return NO_KEYPOINTS
        return find_learned_keypoints(gray, mask, self._weights)


def learned_agent(keypoints: LearnedKeypoints, outline: Outline) -> KeypointAgent:
    """Return the agent that matches learned keypoints."""
    return KeypointAgent(keypoints.of, outline, LEARNED_FIT, LEARNED_MATCHES)
