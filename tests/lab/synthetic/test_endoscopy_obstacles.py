"""What hides the tissue of a synthetic endoscope is drawn where its truth says, and nothing is by default."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings, Obstacles
from smalti_lab.synthetic.scene import procedural_scene

PLAIN = EndoscopeSettings(frames=12, width=160, height=160, particles=0)


def test_a_frame_changes_exactly_where_something_hides_the_tissue():
    scene = procedural_scene(600, 600, seed=2)
    obstacles = Obstacles(tool=0.5, dirt=6, logo=True, clock=True)
    plain, hidden = (EndoscopeSequence(scene, replace(PLAIN, obstacles=o), seed=1) for o in (Obstacles(), obstacles))
    reaching = np.flatnonzero(hidden.obstructions.reach >= 0)
    assert len(reaching) == 6
    n = int(reaching[np.argmax(hidden.obstructions.reach[reaching])])
    change = np.abs(hidden.frame(n).astype(int) - plain.frame(n)).max(axis=2)
    layers = hidden.hidden(n)
    inside = hidden.field(n)
    for kind in ("tool", "overlays"):
        solid = (layers[kind] > 0.9) & inside
        assert solid.sum() > 50
        assert np.median(change[solid]) > 30
    anything = np.maximum.reduce([layers["tool"], layers["overlays"], layers["dirt"]])
    assert np.median(change[(anything < 0.01) & inside]) < 4
    assert not any(plain.hidden(n)[kind].any() for kind in ("tool", "overlays", "dirt", "particles"))
