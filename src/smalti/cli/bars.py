"""Progress bars with an estimate of the time left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from smalti.building.progress import Step


class Bars:
    """Shows every stage as a bar on standard error."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Step]:
        """Show a bar of `total` parts."""
        with tqdm(total=total, desc=f"{name:<10}", dynamic_ncols=True, smoothing=0.1, mininterval=0.2) as bar:

            def step(done: int = 1) -> None:
                bar.update(done)

            yield step

    def say(self, message: str) -> None:
        """Print a line that no bar overwrites."""
        tqdm.write(f"smalti: {message}", file=sys.stderr)
