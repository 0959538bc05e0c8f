"""What the tests of learned keypoints share."""

from __future__ import annotations

import pytest

from smalti.registration.learned_weights import find_weights

needs_weights = pytest.mark.skipif(
    find_weights() is None, reason="the weights of learned keypoints are not installed: make test-learned"
)
