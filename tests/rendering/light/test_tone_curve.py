from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.tone_curve import KNEE, WHITE, shown


def curve(values: np.ndarray, white: float) -> np.ndarray:
    return np.array([shown(np.float32(value), white) for value in values])


@pytest.mark.parametrize("white", [WHITE, 300.0, 700.0])
def test_up_to_the_knee_nothing_changes(white):
    values = np.linspace(-20, KNEE, 50)
    np.testing.assert_allclose(curve(values, white), values, rtol=1e-6)


@pytest.mark.parametrize("white", [260.0, 300.0, 700.0])
def test_above_the_knee_it_rises_ever_slower_up_to_white(white):
    slopes = np.diff(curve(np.linspace(KNEE, white, 200), white)) / ((white - KNEE) / 199)
    assert slopes[0] == pytest.approx(1.0, abs=0.1)
    assert (slopes > 0).all()
    assert (np.diff(slopes) < 1e-3).all()
    assert curve(np.array([white]), white)[0] == pytest.approx(WHITE, abs=1e-3)


def test_frames_whose_light_is_not_corrected_keep_clipped_pixels():
    assert shown(np.float32(255.0), WHITE) == 255.0
