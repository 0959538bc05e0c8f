"""Stitch frames with a peer, inside the peers' environment: python stitchers.py TOOL FRAMES.json FOLDER.

The placements of the frames are written to FOLDER/placed.json before the panorama is drawn, so that they exist even if
drawing fails. Nothing of Smalti is imported here.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray


def main() -> None:
    tool, listing, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    paths: list[str] = json.loads(listing.read_text())
    panorama = TOOLS[tool](paths, folder)
    if not cv2.imwrite(str(folder / "panorama.png"), panorama):
        raise SystemExit("the panorama could not be written")


def stitch_by_openstitching(paths: Sequence[str], folder: Path) -> Any:
    """Run its `AffineStitcher` with its defaults except for the crop, which refuses outlines with a hole."""
    from stitching import AffineStitcher  # type: ignore[import-not-found]  # noqa: PLC0415
    from stitching.images import Images  # type: ignore[import-not-found]  # noqa: PLC0415

    warnings.simplefilter("ignore")  # it warns of frames left out, which are listed in placed.json
    stitcher = AffineStitcher(crop=False)
    estimate_scale = stitcher.estimate_scale

    def keep_and_go_on(cameras: Sequence[Any]) -> None:
        """Take the cameras where `stitch` has just refined them."""
        images = stitcher.images
        sizes = zip(images.get_scaled_img_sizes(Images.Resolution.MEDIUM), images.sizes, strict=True)
        scales = [(small[0] / full[0], small[1] / full[1]) for small, full in sizes]
        keep(folder, [paths.index(name) for name in images.names], cameras, scales)
        estimate_scale(cameras)

    stitcher.estimate_scale = keep_and_go_on
    return stitcher.stitch(list(paths))


def stitch_by_opencv(paths: Sequence[str], folder: Path) -> Any:
    """Run `cv2.Stitcher` in SCANS mode. Its two public steps are what its `stitch` does."""
    stitcher = cv2.Stitcher.create(cv2.Stitcher_SCANS)
    images = [np.asarray(cv2.imread(path)) for path in paths]
    check(stitcher.estimateTransform(images))
    kept = [int(index) for index in stitcher.component()]
    scale = stitcher.workScale()
    keep(folder, kept, stitcher.cameras(), [(scale, scale)] * len(kept))
    status, panorama = stitcher.composePanorama()
    check(status)
    return panorama


def check(status: int) -> None:
    reasons = {
        cv2.Stitcher_ERR_NEED_MORE_IMGS: "needs more images (no two of them match well enough)",
        cv2.Stitcher_ERR_HOMOGRAPHY_EST_FAIL: "the maps could not be estimated",
        cv2.Stitcher_ERR_CAMERA_PARAMS_ADJUST_FAIL: "the bundle adjustment failed",
    }
    if status != cv2.Stitcher_OK:
        raise SystemExit(reasons.get(status, f"status {status}"))


def keep(folder: Path, kept: Sequence[int], cameras: Iterable[Any], scales: Iterable[tuple[float, float]]) -> None:
    """Write the frames kept and their maps (3, 3) from pixels as they were read: as estimated and as drawn."""
    estimated, drawn = [], []
    for camera, (scale_x, scale_y) in zip(cameras, scales, strict=True):
        small_from_mosaic = camera.R.astype(np.float64)
        estimated.append(place(small_from_mosaic, scale_x, scale_y).tolist())
        drawn.append(place(distort(small_from_mosaic), scale_x, scale_y).tolist())
    content = {"kept": list(kept), "estimated": estimated, "drawn": drawn}
    unfinished = folder / "placed.part"
    unfinished.write_text(json.dumps(content))
    unfinished.rename(folder / "placed.json")  # whole or not at all, because the process may be killed at any moment


def distort(small_from_mosaic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the map by which OpenCV's affine warper draws: it transposes the linear part where it should invert it.

    Found by `PyRotationWarper.warpPointBackward`, and by matching frames with a finished panorama: within 0.2 px.
    """
    linear, shift = small_from_mosaic[:2, :2], small_from_mosaic[:2, 2]
    drawn = small_from_mosaic.copy()
    drawn[:2, 2] = linear @ linear.T @ shift
    return drawn


def place(small_from_mosaic: NDArray[np.float64], scale_x: float, scale_y: float) -> NDArray[np.float64]:
    """Return `mosaic_from_frame` of an affine camera, which was estimated on a frame made smaller.

    Resizing keeps the frame's corners and not the centre of its first pixel, hence the shift by half a pixel.
    """
    small_from_frame = np.diag([scale_x, scale_y, 1.0])
    small_from_frame[:2, 2] = 0.5 * scale_x - 0.5, 0.5 * scale_y - 0.5
    return np.asarray(np.linalg.inv(small_from_mosaic) @ small_from_frame, dtype=np.float64)


TOOLS = {"openstitching": stitch_by_openstitching, "opencv-scans": stitch_by_opencv}


if __name__ == "__main__":
    main()
