"""The files that a build leaves for people and for other programs."""

from __future__ import annotations

from pathlib import Path

from smalti.building.progress import Progress
from smalti.interchange.landmarks_csv import write_landmarks
from smalti.interchange.transforms_json import FrameTransform, write_transforms
from smalti.project.entries import LinkState
from smalti.project.project import Project
from smalti.rendering.mosaic import Mosaic

LARGEST_PNG = 250_000_000
"""Pixels. Larger mosaics are written as tiled TIFF, which viewers open piece by piece."""


def write_tables(project: Project) -> None:
    """Write the transforms and the landmarks of the believed links."""
    labels = {frame.number: frame.label for frame in project.frames}
    transforms = [
        FrameTransform(p.number, labels[p.number], p.part, p.affine, p.final, p.sigma_px) for p in project.placements
    ]
    write_transforms(
        project.folder / "transforms.json",
        transforms,
        size=(project.width, project.height),
        references=project.store.fact("references"),
        apart=project.not_placed,
    )
    believed = {link.pair for link in project.links if link.state is LinkState.BELIEVED}
    kept = [entry.answer.landmarks for entry in project.answers if entry.answer.pair in believed]
    write_landmarks(project.folder / "landmarks.csv", [record for record in kept if record is not None])


def render_mosaics(project: Project, progress: Progress) -> list[Path]:
    """Render the mosaic of every part; the largest is `mosaic.png`, the others are numbered."""
    written = []
    for part in range(project.parts):
        mosaic = project.mosaic(part)
        canvas = mosaic.canvas()
        suffix = "png" if canvas.width * canvas.height <= LARGEST_PNG else "tif"
        path = project.folder / (f"mosaic.{suffix}" if part == 0 else f"mosaic-{part + 1}.{suffix}")
        written.append(render(mosaic, path, progress))
    return written


def render(mosaic: Mosaic, path: Path, progress: Progress, *, scale: float = 1.0) -> Path:
    """Render one mosaic to a file, and show how far it is."""
    done = 0
    with progress.stage("rendering", 100) as step:

        def show(tiles: int, of: int) -> None:
            nonlocal done
            percent = 100 * tiles // of
            step(percent - done)
            done = percent

        return mosaic.save(path, scale=scale, on_progress=show)
