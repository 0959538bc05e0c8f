"""Render a mosaic: canvas, layout of the frames, blend, tiles, file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.frames.visibility import PartFinder
from smalti.geometry.lens import Lens
from smalti.interchange.atomic_files import check_place
from smalti.notebook_html import PICTURE_SIDE, draw_card
from smalti.rendering.blends.blend_table import BLENDS, Blend, check_blend, technique_of
from smalti.rendering.canvas import Canvas, Region, Window
from smalti.rendering.formats.bands import Bands, Caption, Writer
from smalti.rendering.formats.format_table import writer_for
from smalti.rendering.formats.tiff import write_map
from smalti.rendering.frame_cache import FrameReader
from smalti.rendering.layout import Layout
from smalti.rendering.mosaic_overview import MosaicOverview
from smalti.rendering.pixel_maps import (
    MAP_KINDS,
    MapKind,
    MosaicMaps,
    check_map_kind,
    map_coverage,
    map_source,
    map_uncertainty,
    write_frame_maps,
)
from smalti.rendering.tile_scheduler import CHECKPOINT_FROM_PIXELS, Checkpoint, MemoryBudget, TileScheduler, Tiling

__all__ = ["BLENDS", "MAP_KINDS", "Blend", "Caption", "FrameReader", "MapKind", "Mosaic", "OnProgress", "Region"]

OnProgress = Callable[[int, int], None]
"""Called with the number of finished steps and the number of all steps."""

MAP_ROWS = 256
DEFAULT_MEMORY = 2**30
LEAST_MEMORY = 2**29
MOST_MEMORY = 2**40

LARGEST_SHOWN = 200_000_000
"""Pixels of all frames together: a notebook shows a picture of such a mosaic, and only the size of a larger one."""


class Mosaic:
    """A mosaic that can be rendered in several ways. It renders only on request.

    The memory in use stays within `memory_bytes`, whatever the size of the mosaic.
    """

    def __init__(
        self,
        frames: FrameReader,
        mosaic_from_frame: Mapping[int, NDArray[np.float64]],
        width: int,
        height: int,
        mask: NDArray[np.bool_] | None = None,
        *,
        lens: Lens | None = None,
        sigma_px: Mapping[int, float] | None = None,
        memory_bytes: int = DEFAULT_MEMORY,
        folder: Path | None = None,
        say: Callable[[str], None] = lambda message: None,
        finder: PartFinder | None = None,
    ) -> None:
        """Take frames of one size, a map (3, 3) for each frame to draw, and the mask (h, w) of valid frame pixels.

        The maps take undistorted pixels. `lens` maps these to distorted pixels; without a lens both are the same.
        `sigma_px` is the position uncertainty of each frame; certain frames are preferred. `folder` keeps intermediate
        results, so that an interrupted rendering can go on. It must belong to these frames alone. Without a folder the
        results are lost. `say` is told of damaged ones, which are computed again. A `finder` finds each frame's own
        mask within the common one: what it hides comes from other frames.
        """
        if not LEAST_MEMORY <= memory_bytes <= MOST_MEMORY:
            raise UsageError(
                f"memory {memory_bytes // 2**20} MB: give {LEAST_MEMORY // 2**20} to {MOST_MEMORY // 2**20}"
            )
        self._layout = Layout(frames, mosaic_from_frame, width, height, mask, sigma_px or {}, folder, lens, say, finder)
        self._budget = MemoryBudget.within(memory_bytes)

    def canvas(self, scale: float = 1.0) -> Canvas:
        """Return the grid of pixels that holds all frames."""
        layout = self._layout
        size = layout.width, layout.height
        return Canvas.around(layout.mosaic_from_frame, *size, scale, rim=layout.lens.rim, numbers=layout.numbers)

    def save(
        self,
        path: str | Path,
        *,
        blend: Blend = "multiband",
        scale: float = 1.0,
        region: Region | None = None,
        even_light: bool = True,
        caption: Caption | None = None,
        on_progress: OnProgress | None = None,
        overview: MosaicOverview | None = None,
        writer: Writer | None = None,
    ) -> Path:
        """Write the mosaic to a file, transparent where no frame is. The extension of `path` selects the format.

        A `writer` takes the place of the format's own. An `overview` that was begun for this mosaic is filled; then the
        scale is 1, and the region is everything.
        """
        path = Path(path)
        write = writer or writer_for(path)
        check_blend(blend)
        canvas = self.canvas(scale)
        window = canvas.window if region is None else canvas.part(region)
        check_place(path)
        checkpoint = self._checkpoint(canvas, window, blend, even_light)
        bands = self._bands(canvas, window, blend, even_light, on_progress or _ignore, checkpoint)
        if overview is not None:
            assert (scale, region) == (1.0, None), "an overview is of the whole mosaic"
            bands = replace(bands, pixels=_shown_to(overview, bands.pixels))
        write(path, bands, caption or Caption(path.stem))
        if checkpoint is not None:
            checkpoint.clear()
        return path

    def save_maps(
        self,
        path: str | Path,
        kinds: Sequence[MapKind],
        *,
        scale: float = 1.0,
        region: Region | None = None,
        even_light: bool = True,
        spread: Mapping[int, NDArray[np.float64]] | None = None,
        caption: Caption | None = None,
    ) -> list[Path]:
        """Write maps with the geometry of the mosaic beside it: `mosaic.source.tif` beside `mosaic.png`.

        A pixel of `source` is the frame number plus 1, or 0 where no frame is. A JSON file with the maps from the
        canvas to each frame comes with it. `uncertainty` needs `spread`: see `map_uncertainty`.
        """
        path = Path(path)
        for kind in kinds:
            check_map_kind(kind)
        if "uncertainty" in kinds and spread is None:
            raise UsageError("a map of the uncertainty needs the spread of each frame")
        canvas = self.canvas(scale)
        window = canvas.window if region is None else canvas.part(region)
        name = path.name.removesuffix(path.suffix).removesuffix(".ome")
        written = []
        for kind in kinds:
            target = path.with_name(f"{name}.{kind}.tif")
            rows = self._map_rows(canvas, window, kind, even_light, spread or {})
            write_map(target, Bands(window.width, window.height, MAP_ROWS, rows), caption or Caption(name=kind))
            written.append(target)
        if "source" in kinds:
            written.append(write_frame_maps(path.with_name(f"{name}.frames.json"), self._layout, canvas, window))
        return written

    def maps(self, canvas: Canvas, spread: Mapping[int, NDArray[np.float64]] | None = None) -> MosaicMaps:
        """Return the maps of a canvas. They must fit into memory."""
        return MosaicMaps(
            map_source(self._layout, canvas, True, canvas.window),
            map_coverage(self._layout, canvas, canvas.window),
            map_uncertainty(self._layout, canvas, True, spread or {}, canvas.window),
        )

    def begin_overview(self) -> MosaicOverview:
        """Return an empty overview, which `save` fills."""
        return MosaicOverview(self._layout, self.canvas(), even_light=True)

    def overview(self) -> MosaicOverview:
        """Paint the mosaic for its overview only."""
        canvas, found = self.canvas(), self.begin_overview()
        for band in self._bands(canvas, canvas.window, "multiband", True, _ignore).pixels:
            found.add(band)
        return found

    def image(self, max_size: int = 2000, *, blend: Blend = "multiband") -> NDArray[np.uint8]:
        """Return a preview (h, w, 4), RGBA, whose longer side has at most `max_size` pixels."""
        if max_size < 1:
            raise UsageError(f"max_size {max_size}: an image has at least one pixel")
        whole = self.canvas()
        return self.render(self.canvas(min(1.0, max_size / max(whole.width, whole.height))), blend)

    def render(
        self, canvas: Canvas, blend: Blend = "multiband", *, even_light: bool = True, window: Window | None = None
    ) -> NDArray[np.uint8]:
        """Return the pixels of a canvas, or of a window of it, (h, w, 4), RGBA. They must fit into memory."""
        check_blend(blend)
        bands = self._bands(canvas, canvas.window if window is None else window, blend, even_light, _ignore)
        return np.concatenate(list(bands.pixels))

    def _repr_html_(self) -> str:
        """Show the mosaic in a notebook."""
        layout, whole = self._layout, self.canvas()
        frames = len(layout.numbers)
        rows = [
            ("frames", f"{frames} of {layout.width} × {layout.height} px"),
            ("size", f"{whole.width} × {whole.height} px"),
        ]
        if frames * layout.width * layout.height > LARGEST_SHOWN:
            return draw_card("Mosaic", [*rows, ("picture", "large: image() renders a preview, save() a file")])
        return draw_card("Mosaic", rows, self._thumbnail)

    @cached_property
    def _thumbnail(self) -> NDArray[np.uint8]:
        return self.image(PICTURE_SIDE)

    def _bands(
        self,
        canvas: Canvas,
        window: Window,
        blend: Blend,
        even_light: bool,
        on_progress: OnProgress,
        checkpoint: Checkpoint | None = None,
    ) -> Bands:
        layout = self._layout
        tiling = Tiling.of(window, self._budget)
        steps = _Steps(on_progress, len(layout.numbers) + tiling.tiles)
        layout.plan(steps.count)
        technique = technique_of(blend, canvas, layout, even_light)
        frames = layout.frame_cache(canvas, technique.levels, self._budget.frames)
        scheduler = TileScheduler(window, technique, frames, layout.boxes(canvas, technique.reach), self._budget)
        if checkpoint is None:
            return Bands(window.width, window.height, tiling.rows, scheduler.paint(steps.count))
        steps.count(tiling.across * len(checkpoint))
        shapes = [(band.height, band.width, 4) for band in window.tiles(window.width, tiling.rows)]
        pixels = checkpoint.resume(shapes, lambda first: scheduler.paint(steps.count, first), layout.say)
        return Bands(window.width, window.height, tiling.rows, pixels)

    def _checkpoint(self, canvas: Canvas, window: Window, blend: Blend, even_light: bool) -> Checkpoint | None:
        """Return the store of finished bands, or None where it is not worth it."""
        layout = self._layout
        if window.width * window.height < CHECKPOINT_FROM_PIXELS or not layout.keeps_results:
            return None
        known = (
            layout.numbers,
            layout.mosaic_from_frame,
            layout.lens,
            layout.sigma_px,
            layout.mask,
            layout.own_masks(),
        )
        rows = Tiling.of(window, self._budget).rows
        return Checkpoint(layout.folder, canvas, window, blend, even_light, rows, *known)

    def _map_rows(
        self,
        canvas: Canvas,
        window: Window,
        kind: MapKind,
        even_light: bool,
        spread: Mapping[int, NDArray[np.float64]],
    ) -> Iterator[NDArray[np.uint16] | NDArray[np.uint32] | NDArray[np.float32]]:
        layout = self._layout
        for band in window.tiles(window.width, MAP_ROWS):
            if kind == "coverage":
                yield map_coverage(layout, canvas, band)
            elif kind == "source":
                # Viewers treat 0 as "no data".
                yield (map_source(layout, canvas, even_light, band) + 1).astype(np.uint32)
            else:
                yield map_uncertainty(layout, canvas, even_light, spread, band)


class _Steps:
    """Counts finished steps and reports them."""

    def __init__(self, on_progress: OnProgress, total: int) -> None:
        self.total, self.done, self._on_progress = total, 0, on_progress

    def count(self, steps: int = 1) -> None:
        """Count more finished steps."""
        self.done = min(self.done + steps, self.total)  # damaged bands are counted twice
        self._on_progress(self.done, self.total)


def _shown_to(overview: MosaicOverview, bands: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    for band in bands:
        overview.add(band)
        yield band


def _ignore(done: int, total: int) -> None:
    pass
