"""Images, videos and masks of every format that is read, damaged at random: alone, and among good ones."""

from __future__ import annotations

import shutil
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import numpy as np
import tifffile
from PIL import Image

from tests.campaign.commands import Trial, Worker, try_all
from tests.campaign.mutations import mutate
from tests.campaign.samples import BUILD, FRAMES, SIZE, small_walk
from tests.campaign.tally import Tally
from tests.frames.scenes import write_video

X264 = {"preset": "ultrafast", "g": 6}
VIDEOS = {
    "h264.mp4": ("libx264", X264),
    "h264 rotated.mp4": ("libx264", {**X264, "rotate": (90, False, False)}),
    "h264 mirrored.mov": ("libx264", {**X264, "rotate": (180, True, False)}),
    "h264 variable rate.mkv": ("libx264", {**X264, "step": lambda k: 1 + k * k % 5}),
    "h264 fragmented.mp4": ("libx264", {**X264, "container": {"movflags": "frag_keyframe+empty_moov"}}),
    "h264.ts": ("libx264", X264),
    "hevc.mp4": ("libx265", {"x265_params": "log-level=none:keyint=6", "preset": "ultrafast"}),
    "vp9.webm": ("libvpx-vp9", {"cpu_used": 8, "deadline": "realtime"}),
    "mjpeg.avi": ("mjpeg", {"pix_fmt": "yuvj420p"}),
    "mpeg4.avi": ("mpeg4", {}),
    "gif.gif": ("gif", {"pix_fmt": "rgb8"}),
}
EXIF_ROTATED = Image.Exif()
EXIF_ROTATED[274] = 6
IMAGES = {
    "rgb.png": {},
    "palette.png": {"mode": "P", "optimize": True},
    "grey.png": {"mode": "L"},
    "baseline.jpg": {"quality": 90},
    "progressive.jpg": {"quality": 90, "progressive": True},
    "rotated.jpg": {"quality": 90, "exif": EXIF_ROTATED},
    "grey.jpg": {"mode": "L"},
    "plain.tif": {},
    "lzw.tif": {"compression": "tiff_lzw"},
    "deflate.tif": {"compression": "tiff_adobe_deflate"},
    "jpeg.tif": {"compression": "jpeg"},
    "palette.bmp": {"mode": "P"},
    "rgb.bmp": {},
    "lossy.webp": {"quality": 90},
    "lossless.webp": {"lossless": True},
}
DEEP = {
    "16 bit.tif": {},
    "tiled.tif": {"tile": (32, 32), "compression": "zlib"},
    "big.tif": {"bigtiff": True},
    "planar.tif": {"planarconfig": "separate", "photometric": "rgb"},
    "pages.tif": {"pages": 2},
}
MASKS = ("mask.png", "mask.jpg", "mask.tif", "mask.bmp")


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Take the formats in turn."""
    kinds = [*VIDEOS, "changing size.ts", *IMAGES, *DEEP, *MASKS]
    good = folder / "good"
    good.mkdir()
    _write_good(good)

    def try_one(number: int, rng: np.random.Generator, worker: Worker, place: Path) -> Trial:
        kind = kinds[number % len(kinds)]
        options: tuple[object, ...] = ()
        if kind in MASKS:
            how, damaged = _damage(good / "masks" / kind, place / kind, rng)
            location, options = good / "rgb.png", ("--mask", damaged)
        elif (good / kind).is_dir():
            location = place / "frames"
            shutil.copytree(good / kind, location)
            images = sorted(location.iterdir())
            many = len(images) if rng.random() < 0.2 else 1  # one damaged image among good ones, or no good one
            for path in rng.choice(np.array(images, dtype=object), many, replace=False):
                how, _ = _damage(path, path, rng)
        else:
            how, location = _damage(good / kind, place / kind, rng)
        ended = worker.run("build", location, "-o", place / "out", *BUILD, *options, place=place)
        faults = [ended.fault] if ended.fault else []
        if ended.code and not faults and str(place) not in ended.err:
            faults.append(f"{ended.command}: names no file: {ended.err.strip()}")
        if ended.code == 0 and not (place / "out" / "report.html").exists():
            faults.append(f"{ended.command}: there is no report")
        return Trial(f"{kind}, {how}", ended.outcome, tuple(faults))

    return try_all("fuzzed inputs", count, seed, folder, try_one)


def _damage(source: Path, to: Path, rng: np.random.Generator) -> tuple[str, Path]:
    others = [path for path in source.parent.iterdir() if path.is_file()]
    other = others[rng.integers(len(others))].read_bytes()
    how, content = mutate(source.read_bytes(), rng, other)
    to.write_bytes(content)
    return how, to


def _write_good(folder: Path) -> None:
    frames = [image for _, image in small_walk().read_many(range(FRAMES))]
    for name, (codec, options) in VIDEOS.items():
        write_video(folder / name, codec, FRAMES, draw=lambda k: frames[k], **options)
    _write_changing_size(folder / "changing size.ts", frames)
    for name, options in IMAGES.items():
        mode = options.get("mode", "RGB")
        rest = {key: value for key, value in options.items() if key != "mode"}
        _write_each(folder / name, frames, partial(_save_image, mode=mode, options=rest))
    for name, options in DEEP.items():
        _write_each(folder / name, frames, partial(_save_tiff, options=options))
    (folder / "masks").mkdir()
    mask = np.zeros(SIZE[::-1], dtype=np.uint8)
    mask[6:-6, 6:-6] = 255
    for name in MASKS:
        Image.fromarray(mask).save(folder / "masks" / name)


def _write_each(folder: Path, frames: list[np.ndarray], save: object) -> None:
    folder.mkdir()
    for n, frame in enumerate(frames):
        save(folder / f"frame_{n:04}{folder.suffix}", frame)


def _save_image(path: Path, frame: np.ndarray, mode: str, options: dict[str, object]) -> None:
    Image.fromarray(frame).convert(mode).save(path, **options)


def _save_tiff(path: Path, frame: np.ndarray, options: dict[str, object]) -> None:
    deep = frame.astype(np.uint16) * 257
    if options.get("planarconfig"):
        deep = np.moveaxis(deep, 2, 0)
    pages = options.get("pages", 1)
    rest = {key: value for key, value in options.items() if key not in ("pages", "bigtiff")}
    with tifffile.TiffWriter(path, bigtiff="bigtiff" in options) as file:
        for _ in range(pages):
            file.write(deep, **rest)


def _write_changing_size(path: Path, frames: list[np.ndarray]) -> None:
    """Join two streams whose frames have different sizes, as some cameras and screen recorders do."""
    parts = []
    for shrink in (1, 2):
        with av.open(str(path), "w", format="mpegts") as out:
            stream = out.add_stream("libx264", rate=Fraction(30), options={"preset": "ultrafast", "g": "6"})
            stream.width, stream.height, stream.pix_fmt = SIZE[0] // shrink, SIZE[1] // shrink, "yuv420p"
            for n, image in enumerate(frames):
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image[::shrink, ::shrink]), format="rgb24")
                frame.pts, frame.time_base = n + len(frames) * (shrink - 1), Fraction(1, 30)
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
        parts.append(path.read_bytes())
    path.write_bytes(b"".join(parts))
