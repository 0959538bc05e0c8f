"""Which frames are of no use: black, white, without contrast or detail, hidden, repeated or blurred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smalti.frames.measure import FrameMeasure, measure, measure_frames, measure_views

__all__ = ["FrameMeasure", "measure", "measure_frames", "measure_views", "unusable"]

_BLACK_BELOW = 20
_WHITE_ABOVE = 245
_LEAST_SPREAD = 6.0

# Real sequences go down to a quarter of their neighbours' sharpness as the scene changes; an image smeared
# over a twentieth of its width falls below a twelfth.
_NEIGHBOURS_EACH_SIDE = 10
_FEWEST_NEIGHBOURS = 4
_BLUR_SHARPNESS = 0.08
_BLUR_DETAIL = 0.2

# A burst of spoilt frames is its own neighbourhood, so that only the sequence can judge it. Against its upper quartile,
# frames of real sequences keep 0.6 of the texture and more; blur, fluid and haze leave a third and less.
_UPPER_QUARTILE = 0.75
_LEAST_TEXTURE = 0.4
_LEAST_SEEN = 0.3


def unusable(measures: Sequence[FrameMeasure]) -> dict[int, str]:
    """Return the frames to set aside, by their place in the sequence, each with the reason."""
    reasons: dict[int, str] = {}
    original = 0
    usual_seen = _upper_quartile([measured.seen for measured in measures])
    for index, measured in enumerate(measures):
        if not measured.is_repeat:
            original = index
        if measured.seen < _LEAST_SEEN * usual_seen:
            reasons[index] = f"hidden ({_percent(measured.seen, usual_seen)} of the usual field can be seen)"
        elif measured.bright < _BLACK_BELOW:
            reasons[index] = "black"
        elif measured.dark > _WHITE_ABOVE:
            reasons[index] = "white (overexposed)"
        elif measured.bright - measured.dark < _LEAST_SPREAD:
            reasons[index] = "no contrast"
        elif measured.is_repeat:
            reasons[index] = f"frozen (repeats frame {original})"
    # A reason found by the neighbours says more than one found by the sequence.
    return dict(sorted({**_find_smooth(measures), **_find_blurred(measures, reasons), **reasons}.items()))


def _find_smooth(measures: Sequence[FrameMeasure]) -> dict[int, str]:
    """Judge each frame by the sequence: fluid, haze or a blur that lasts leave next to nothing to be seen."""
    usual = _upper_quartile([measured.texture for measured in measures])
    return {
        index: f"next to no detail ({_percent(measured.texture, usual)} of the usual texture)"
        for index, measured in enumerate(measures)
        if measured.texture < _LEAST_TEXTURE * usual
    }


def _find_blurred(measures: Sequence[FrameMeasure], others: dict[int, str]) -> dict[int, str]:
    """Judge each frame by its neighbours in time, which show about the same scene."""
    usable = [index for index in range(len(measures)) if index not in others]
    reasons: dict[int, str] = {}
    for place, index in enumerate(usable):
        around = usable[max(0, place - _NEIGHBOURS_EACH_SIDE) : place + _NEIGHBOURS_EACH_SIDE + 1]
        neighbours = [measures[other] for other in around if other != index]
        if len(neighbours) < _FEWEST_NEIGHBOURS:
            continue
        sharpness = measures[index].sharpness / np.median([other.sharpness for other in neighbours])
        detail = measures[index].detail / np.median([other.detail for other in neighbours])
        if sharpness < _BLUR_SHARPNESS and detail < _BLUR_DETAIL:
            reasons[index] = f"blurred beyond use (sharpness {_percent(float(sharpness))} of its neighbours')"
    return reasons


def _upper_quartile(values: Sequence[float]) -> float:
    return float(np.quantile(values, _UPPER_QUARTILE)) if values else 0.0


def _percent(value: float, usual: float = 1.0) -> str:
    return f"{max(1, round(100 * value / usual))} %"
