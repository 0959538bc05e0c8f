"""Synthetic sequences as files: a video or a folder of images, and the truth beside them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from smalti.errors import InputError, OutputError, UsageError
from smalti.geometry.linear_maps import square
from smalti.records import Transforms
from smalti_lab.synthetic.synthetic_sequence import RenderedFrames, SyntheticSequence

CONVENTION = (
    "mosaic_from_frame maps points (x, y, 1) of a frame to the mosaic, which is the scene; pixels, x to the right, "
    "y down, the centre of the top-left pixel is (0, 0)"
)
WITH_PRESETS = {
    "libx264": {"x264-params": "cpu-independent=1"},
    "libx265": {"x265-params": "log-level=error"},
}
"""Codecs that have presets, and what keeps them repeatable or quiet.

With several threads, or with the fastest code for the processor, x264 writes other bytes from run to run.
"""


def write_video(
    sequence: RenderedFrames,
    path: str | Path,
    codec: str = "libx264",
    *,
    crf: int = 12,
    frames_per_second: int = 25,
    pixel_format: str | None = None,
    preset: str = "medium",
) -> Path:
    """Encode all frames, one by one. The extension selects the container, `crf` the quality (0 is the best).

    `preset` is the effort of x264 and x265.
    `mjpeg` has no `crf`. It gets a quarter of it as its quantiser, which looks about as good.
    """
    path = Path(path)
    pixel_format = pixel_format or ("yuvj420p" if codec == "mjpeg" else "yuv420p")
    if pixel_format.endswith("420p") and (sequence.width % 2 or sequence.height % 2):
        raise UsageError(
            f"{path}: {pixel_format} needs an even width and height, the frames have {sequence.width} × "
            f"{sequence.height}; choose an even size or pixel_format='yuv444p'"
        )
    try:
        with av.open(path, "w") as container:
            stream = container.add_stream(codec, rate=Fraction(frames_per_second), options=_options(codec, crf, preset))
            assert isinstance(stream, av.VideoStream)
            stream.width, stream.height, stream.pix_fmt = sequence.width, sequence.height, pixel_format
            stream.codec_context.thread_count = 1
            if codec == "mjpeg":
                stream.codec_context.qmin = stream.codec_context.qmax = max(crf // 4, 1)
            for _, image in sequence.read_many(range(len(sequence))):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            container.mux(stream.encode(None))
    except (av.FFmpegError, ValueError, OSError) as error:
        raise OutputError(f"{path}: cannot be written as video with codec '{codec}': {error}") from error
    return path


def write_frames(sequence: RenderedFrames, folder: str | Path, extension: str = ".jpg") -> list[Path]:
    """Write one image for each frame, numbered from 0, and return their paths."""
    folder = Path(folder)
    digits = max(4, len(str(len(sequence) - 1)))
    paths = [folder / f"frame_{n:0{digits}}{extension}" for n in range(len(sequence))]
    # Colours at full resolution, so that the file does not blur them.
    subsampling = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444
    parameters = [cv2.IMWRITE_JPEG_QUALITY, 95, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, subsampling]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for (_, image), path in zip(sequence.read_many(range(len(sequence))), paths, strict=True):
            # Encoded in memory, because OpenCV cannot write to every path that the system can.
            _, encoded = cv2.imencode(extension, image[:, :, ::-1], parameters if extension == ".jpg" else [])
            path.write_bytes(encoded.tobytes())
    except cv2.error as error:
        raise UsageError(f"'{extension}' is no kind of image that can be written; choose .jpg, .png or .tif") from error
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from error
    return paths


def write_truth(sequence: SyntheticSequence, path: str | Path) -> Path:
    """Write the exact maps as 3 × 3 matrices, with their convention, as JSON."""
    path = Path(path)
    content = {
        "convention": CONVENTION,
        "frame_size": [sequence.width, sequence.height],
        "scene_size": [sequence.scene.shape[1], sequence.scene.shape[0]],
        "mosaic_from_frame": square(sequence.mosaic_from_frame).tolist(),
    }
    try:
        path.write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
    return path


def read_truth(path: str | Path) -> Transforms:
    """Read `mosaic_from_frame` (N, 2, 3) as `write_truth` wrote it, to the last bit."""
    try:
        maps = np.array(json.loads(Path(path).read_text(encoding="utf-8"))["mosaic_from_frame"], np.float64)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a file made by write_truth") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: holds no maps mosaic_from_frame; give a file made by write_truth") from error
    if maps.ndim != 3 or maps.shape[1:] != (3, 3):
        raise InputError(f"{path}: the maps have shape {maps.shape}, expected (N, 3, 3)")
    return maps[:, :2]


def _options(codec: str, crf: int, preset: str) -> dict[str, str]:
    if codec == "mjpeg":
        return {}
    # A constant quality. vp9 takes it only together with a bit rate of zero.
    if "vp9" in codec:
        return {"crf": str(crf), "b": "0"}
    return {"crf": str(crf), **({"preset": preset, **WITH_PRESETS[codec]} if codec in WITH_PRESETS else {})}
