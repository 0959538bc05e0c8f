from __future__ import annotations

import numpy as np

from smalti.rendering.exposure import average_view
from smalti.rendering.frame_survey import Survey
from smalti.rendering.light_comparison import valid_cells
from tests.rendering.scene import Frames, shift

WIDTH, HEIGHT = 160, 120


def average(tmp_path, count: int, step: float = 170.0):
    """Frames side by side of a scene without any structure but grain, darker to the right."""
    rng = np.random.default_rng(0)
    shade = np.exp(-0.5 * np.arange(WIDTH) / WIDTH)
    frames = {}
    for k in range(count):
        scene = rng.normal(100 + 10 * (k % 5), 8, (HEIGHT, WIDTH, 3))
        frames[k] = np.rint(scene * shade[None, :, None]).clip(0, 255).astype(np.uint8)
    survey = Survey(tmp_path, list(range(count)), WIDTH, HEIGHT)
    survey.read_frames(Frames(frames))
    maps = np.array([shift(step * k, 0) for k in range(count)])
    return average_view(survey, maps, valid_cells(np.ones((HEIGHT, WIDTH), dtype=bool), survey))


def test_over_many_places_the_shading_is_what_stays(tmp_path):
    view = average(tmp_path, 30)
    expected = -0.5 * view.points[:, 0] / WIDTH
    off = view.logs - expected[:, None]
    assert abs(off - off.mean()).max() < 0.05
    assert 0 < view.sigma < 0.1


def test_frames_at_one_place_tell_nothing_of_the_shading(tmp_path):
    assert average(tmp_path, 30, step=0.5).sigma == np.inf
    (tmp_path / "few").mkdir()
    assert average(tmp_path / "few", 5).sigma == np.inf
