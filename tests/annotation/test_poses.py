"""What the page's own tests are compared with is what this computation says."""

from __future__ import annotations

import json

import numpy as np

from tests.annotation.poses import FILE, examples


def test_the_examples_of_the_page_are_fresh():
    kept, made = json.loads(FILE.read_text()), examples()
    assert [example["name"] for example in kept] == [example["name"] for example in made]
    for old, new in zip(kept, made, strict=True):
        assert old.keys() == new.keys()
        for name in ("i_from_j", "covariance", "points_i", "points_j", "seen", "spread"):
            np.testing.assert_allclose(old[name], new[name], rtol=1e-4, atol=1e-6)
