"""Requests of a session that change no answer: what is drawn, proposed, predicted, exported and finished."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from smalti.active_loop import ActiveLoop
from smalti.annotation import messages as say
from smalti.annotation.exports import export
from smalti.annotation.finished_mosaic import describe_finished, find_result, read_tile, write_views
from smalti.annotation.landmark_messages import SMALLEST_DETERMINANT, snap_landmark, trace_both
from smalti.annotation.open_session import OpenSession
from smalti.annotation.overview import describe_mosaic, largest_part, list_answers
from smalti.annotation.pair_maps import matrix_of, reduce
from smalti.annotation.precompute import bounds_ahead_px, error_after_yes_px
from smalti.annotation.session_state import AnyLoop
from smalti.building.delivery import deliver
from smalti.errors import UsageError
from smalti.progress import Progress, Silence, progress_of
from smalti.records import Pair

HAND_SIGMA = 0.06
"""Standard deviation of where a person lays a frame, in units of the frame (a quarter of width plus height)."""

TINY_PX = 1e-12


class ViewRequests(OpenSession):
    """The requests that change no answer."""

    def propose(self, i: int, j: int) -> say.Proposal | None:
        """Return the matcher's answer on a pair; None where known pairs measure the people who answer."""
        pair = Pair(i, j)
        self._answer_history.inner(pair)
        if self._measures.known_share:
            # For no pair: it would be missing for the known ones, or give their answers away.
            return None
        return self._auto_answerer.propose(pair)

    def align(self, request: say.AlignFrames) -> say.Proposal:
        """Return landmarks of an alignment by all pixels, near where a person has laid frame j over frame i."""
        pair = Pair(request.i, request.j)
        self._answer_history.inner(pair)
        i_from_j = np.array(request.i_from_j).reshape(3, 3)
        if not abs(np.linalg.det(i_from_j)) > SMALLEST_DETERMINANT:
            raise UsageError(f"pair {pair}: this map is flat, lay the frame anew")
        sigma_px = HAND_SIGMA * self.project.outline.unit
        return self._auto_answerer.align(pair, i_from_j, sigma_px)

    def forecast(self, i: int, j: int, page: str = "") -> say.Forecast:
        """Return the expected effect of a yes on a pair, and the number of answers until the target."""
        with self._engine_first():
            loop, pair, revision = self._answer_history.loop, self._answer_history.inner(Pair(i, j)), self.revision
            now_px = loop.predicted_error_px
            known = self._known_pair(page)
            before = loop if known is None or known.pair != pair else known.before
            after_px = None
            if isinstance(before, ActiveLoop):
                # Of a known pair, the same share of the error as before it was known.
                after_px = error_after_yes_px(before, pair) * now_px / max(before.predicted_error_px, TINY_PX)
        more = self._count_answers(loop)
        return say.Forecast(
            revision=revision,
            i=i,
            j=j,
            now_px=now_px,
            after_yes_px=after_px,
            more=None if more is None else more[0],
            more_is_bound=more is not None and more[1],
        )

    def mosaic(self) -> say.LiveMosaic:
        """Return the map of every frame."""
        with self._engine_first():
            return describe_mosaic(self._answer_history)

    def answers(self) -> list[say.AnswerRow]:
        """Return all answers in force."""
        with self._engine_first():
            return list_answers(self._answer_history)

    def snap(self, request: say.SnapPoint) -> say.Snapped:
        """Move one side of a landmark to where it correlates best with the other."""
        self._answer_history.inner(Pair(request.i, request.j))
        return snap_landmark(request, self._pictures, self.project.mask)

    def trace(self, request: say.TraceVessel) -> say.TracedVessel:
        """Find the vessel under the strokes that a person has drawn along it in both frames."""
        self._answer_history.inner(Pair(request.i, request.j))
        return trace_both(request, self._pictures, self.project.mask, self._answer_history.loop)

    def pair_map(self, kind: say.MapKind, row: int, column: int, frames: int, size: int) -> say.PairMap:
        """Return a window of a matrix over all pairs."""
        with self._engine_first():
            revision = self.revision
            if (kind, revision) not in self._matrices:
                self._matrices = {known: matrix for known, matrix in self._matrices.items() if known[1] == revision}
                loop = self._answer_history.loop
                self._matrices[kind, revision] = matrix_of(kind, loop)
            matrix = self._matrices[kind, revision]
        return reduce(matrix, kind, row, column, frames, size, revision)

    def frame_jpeg(self, number: int) -> bytes:
        """Return a frame of the source."""
        return self._pictures.frame(number)

    def sheet_jpeg(self, number: int) -> bytes:
        """Return a sheet of small pictures."""
        return self._pictures.sheet(number)

    def mask_png(self) -> bytes:
        """Return the valid pixels of small pictures."""
        return self._pictures.mask()

    def export(self, name: str) -> tuple[str, bytes | Path]:
        """Return media type and content of an export by name. A path is a file that the caller deletes."""
        with self._engine_first():
            placed = largest_part(self._answer_history)
        # Another handle on the same files, because only one thread at a time may read a source.
        with self._opened.again() as project:
            return export(name, project, placed)

    def finish(self, progress: Progress | bool = False) -> None:
        """Finish the mosaic by the answers so far, render it and report; people may go on answering meanwhile."""
        with self._engine_first():
            loop, revision = self._answer_history.loop, self.revision
        with self._opened.again() as project:
            preparation = self._opened.prepare_again(project, Silence())
            deliver(project, preparation, loop, progress_of(progress), revision)
            write_views(project, progress_of(progress))
        with self._engine_first():
            self._answer_history.take_up()
        self._on_change()

    def finished(self) -> say.FinishedMosaic | None:
        """Return the mosaic that was finished last, to be looked at."""
        return describe_finished(self.project)

    def finished_tile(self, version: say.MosaicVersion, level: int, column: int, row: int) -> bytes:
        """Return a tile of it as PNG."""
        return read_tile(self.project.cache.folder, version, level, column, row)

    def result(self, name: str) -> Path:
        """Return a file that was delivered with it."""
        return find_result(self.project, name)

    def _count_answers(self, loop: AnyLoop) -> tuple[int, bool] | None:
        """Return the number of answers until the target, and whether even these do not suffice; None without one."""
        target_px = self._opened.settings.target_px
        if target_px is None or not isinstance(loop, ActiveLoop):
            return None
        bounds, count = bounds_ahead_px(loop), 0
        while True:
            with self._engine_first():
                bound_px = next(bounds, None)
            if bound_px is None:
                return max(count - 1, 0), True
            if bound_px <= target_px:
                return count, False
            count += 1
