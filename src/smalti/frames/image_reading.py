"""Read an image file: its header (`read_header`), its pixels (`decode_eight_bits`, `decode_sixteen_bits`)."""

from __future__ import annotations

import ctypes
import io
import logging
import os
import warnings
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import cv2
import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError, _imaging

from smalti.errors import InputError
from smalti.interchange.regular_files import open_regular, reading

Pixel = TypeVar("Pixel", bound=np.generic)

_EIGHT_BIT_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX"}
_SIXTEEN_BIT_MODES = {"I;16", "I;16B", "I;16L", "I", "LA", "RGB", "RGBA", "RGBX"}
_FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "WEBP", "GIF")

# Tags of TIFF, and of EXIF, which is TIFF inside other formats.
_SUBFILE, _WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC = 254, 256, 257, 258, 262
_ORIENTATION, _PLANAR, _SAMPLE_FORMAT = 274, 284, 339
_PNG_BIT_DEPTH_BYTE = 24
# A file is held in memory while it is decoded. The largest photographs have some hundred megabytes.
_MOST_BYTES = 10**9
# Of one colour. Decoding holds an image several times; this keeps it below 2 GB.
_MOST_DECODED_BYTES = 150 * 10**6


@dataclass(frozen=True, slots=True)
class Orientation:
    """One of the eight orientations: swap x and y, then mirror."""

    swaps_axes: bool = False
    mirrors_x: bool = False
    mirrors_y: bool = False

    @classmethod
    def from_exif(cls, code: int) -> Orientation:
        """Return the orientation of EXIF or TIFF tag 274; unknown codes mean upright."""
        return _BY_EXIF_CODE.get(code, cls())

    @classmethod
    def from_matrix(cls, shown_from_stored: NDArray[np.int32]) -> Orientation | None:
        """Return the orientation of a video's display matrix (3, 3), or None if it is not one of the eight.

        The matrix multiplies row vectors (x, y, 1) from the right.
        """
        (a, b), (c, d) = np.sign(shown_from_stored[:2, :2])
        if b == c == 0 and a and d:
            return cls(False, a < 0, d < 0)
        if a == d == 0 and b and c:
            return cls(True, c < 0, b < 0)
        return None

    def apply(self, image: NDArray[Pixel]) -> NDArray[Pixel]:
        """Return the image (h, w, ...) as it is displayed."""
        if self.swaps_axes:
            image = image.swapaxes(0, 1)
        if self.mirrors_x:
            image = image[:, ::-1]
        if self.mirrors_y:
            image = image[::-1]
        return image

    def apply_to_size(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height as displayed."""
        return (height, width) if self.swaps_axes else (width, height)


_BY_EXIF_CODE = {
    1: Orientation(),
    2: Orientation(mirrors_x=True),
    3: Orientation(mirrors_x=True, mirrors_y=True),
    4: Orientation(mirrors_y=True),
    5: Orientation(swaps_axes=True),
    6: Orientation(swaps_axes=True, mirrors_x=True),
    7: Orientation(swaps_axes=True, mirrors_x=True, mirrors_y=True),
    8: Orientation(swaps_axes=True, mirrors_y=True),
}


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The displayed size, the bits per sample (8 or 16), and what decoding needs."""

    path: Path
    width: int
    height: int
    bits: int
    mode: str
    orientation: Orientation
    white_is_zero: bool
    is_tiff: bool
    separate_planes: bool
    odd_metadata: bool = False  # a part of it cannot be read


def silence_libraries() -> None:
    """Keep the libraries that decode images from writing to standard error; what matters is in our own messages."""
    for library in ("PIL", "tifffile"):
        # Without any handler, Python prints what they log.
        logging.getLogger(library).addHandler(logging.NullHandler())
    # Pillow has no switch for libtiff, which writes its errors itself.
    switch = getattr(ctypes.CDLL(_imaging.__file__), "TIFFSetErrorHandler", None)
    if switch is not None:
        switch.restype = ctypes.c_void_p
        switch(None)


silence_libraries()


def read_header(path: Path) -> ImageHeader:
    """Read only the header; refuse images that cannot become a frame."""
    try:
        with open_regular(path, most_bytes=_MOST_BYTES) as file, warnings.catch_warnings(record=True) as complaints:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # see `check_frame_size`
            if file.seek(0, os.SEEK_END) == 0:
                raise InputError(f"{path}: is empty; copy it again or remove it")
            with Image.open(file, formats=_FORMATS) as image:
                header = _describe(path, image)
            return replace(header, odd_metadata=bool(complaints))
    except UnidentifiedImageError:
        raise InputError(f"{path}: is not an image that can be read; convert or remove it") from None
    except Image.DecompressionBombError:
        raise InputError(f"{path}: is too large; make it smaller") from None
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, EOFError):
        raise InputError(f"{path}: cannot be read as an image; copy it again, convert or remove it") from None


def _describe(path: Path, image: Image.Image) -> ImageHeader:
    mode = image.mode
    tags = getattr(image, "tag_v2", {})
    # Do not call image.getexif(): for PNG it decodes the whole picture to find a late entry.
    orientation = Orientation.from_exif(Image.Image.getexif(image).get(_ORIENTATION, 1))
    # Some versions of Pillow swap the size of a rotated TIFF; its tags do not.
    stored = (tags[_WIDTH], tags[_HEIGHT]) if tags else image.size
    width, height = orientation.apply_to_size(*stored)
    bits = _count_bits(path, image)
    if width * height * bits / 8 > _MOST_DECODED_BYTES:
        raise InputError(f"{path}: is too large ({width} x {height} px); make it smaller")
    if mode in ("CMYK", "YCCK", "LAB", "HSV"):
        raise InputError(f"{path}: has print colours ({mode}); convert it to RGB")
    if bits not in (8, 16) or mode not in (_SIXTEEN_BIT_MODES if bits == 16 else _EIGHT_BIT_MODES):
        raise InputError(f"{path}: has samples of {bits} bits (mode {mode}); convert it to 8 or 16 bits, gray or RGB")
    if tags and any(kind != 1 for kind in tags.get(_SAMPLE_FORMAT, (1,))):
        raise InputError(f"{path}: has signed or fractional samples; convert it to 8 or 16 bits, gray or RGB")
    pages = _count_pages(image)
    if pages > 1:
        raise InputError(
            f"{path}: holds {pages} pictures; save each one as a separate image, or all of them as a video"
        )
    white_is_zero = bool(tags) and bits == 16 and tags.get(_PHOTOMETRIC) == 0
    return ImageHeader(
        path, width, height, bits, mode, orientation, white_is_zero, bool(tags), tags.get(_PLANAR, 1) == 2
    )


def _count_bits(path: Path, image: Image.Image) -> int:
    """Return the bits per sample; fewer than 8 count as 8."""
    if image.format == "TIFF":
        found: int = max(getattr(image, "tag_v2", {}).get(_BITS, (1,)))
    elif image.format == "PNG":
        with open_regular(path) as file:
            found = file.read(_PNG_BIT_DEPTH_BYTE + 1)[_PNG_BIT_DEPTH_BYTE]
    else:
        found = 8
    return max(8, found)


def _count_pages(image: Image.Image) -> int:
    """Count the pictures, without the previews that cameras and microscopes add."""
    # Many cameras write JPEG as MPO: a photograph, then its previews.
    if image.format == "MPO" or not getattr(image, "is_animated", False):
        return 1
    frames: int = getattr(image, "n_frames", 1)
    if image.format != "TIFF":
        return frames
    pages = 0
    for page in range(frames):
        image.seek(page)
        pages += not getattr(image, "tag_v2", {}).get(_SUBFILE, 0) & 1
    return pages


def decode_eight_bits(header: ImageHeader) -> NDArray[np.uint8]:
    """Return uint8 RGB, (h, w, 3), as displayed; alpha is dropped."""
    image = _load(header, _read_bytes(header))
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette with transparency cannot be converted to RGB directly
    # Converting RGB to RGB would copy it.
    return _check_size(header, _turn(header, np.asarray(image if image.mode == "RGB" else image.convert("RGB"))))


def decode_sixteen_bits(header: ImageHeader) -> NDArray[np.uint16]:
    """Return uint16, gray (h, w) or RGB (h, w, 3), as displayed; alpha is dropped."""
    content = _read_bytes(header)
    image = _load(header, content)  # refuses damaged files; Pillow has no 16-bit colours
    if image.mode.startswith("I"):
        pixels = _turn(header, np.asarray(image).astype(np.uint16))
    elif header.separate_planes:
        pixels = header.orientation.apply(_decode_planes(header, content))
    else:
        pixels = _decode_colours(header, content)
    return _check_size(header, 65535 - pixels if header.white_is_zero else pixels)


def _read_bytes(header: ImageHeader) -> bytes:
    with open_regular(header.path, most_bytes=_MOST_BYTES) as file, reading(header.path):
        return file.read()


def _load(header: ImageHeader, content: bytes) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the header has told already
            image = Image.open(io.BytesIO(content), formats=_FORMATS)
            image.load()
            # Some versions of Pillow rotate a TIFF themselves: do it in all versions.
            return ImageOps.exif_transpose(image) if header.is_tiff else image
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError, zlib.error):
        raise InputError(f"{header.path}: is truncated or damaged; copy it again or remove it") from None


def _decode_planes(header: ImageHeader, content: bytes) -> NDArray[np.uint16]:
    try:
        planes = tifffile.imread(io.BytesIO(content))
    except (ValueError, ImportError):
        raise InputError(
            f"{header.path}: stores its colours in compressed planes; save it without compression"
        ) from None
    return np.moveaxis(planes[:3], 0, 2)


def _decode_colours(header: ImageHeader, content: bytes) -> NDArray[np.uint16]:
    level = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # about tags it does not know
    try:
        pixels = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    finally:
        cv2.utils.logging.setLogLevel(level)
    if pixels is None or pixels.dtype != np.uint16 or pixels.ndim != 3:
        raise InputError(f"{header.path}: its 16-bit colours cannot be read; save it as 8-bit RGB")
    rgb = cast(NDArray[np.uint16], pixels[:, :, 2::-1])
    return _turn(header, rgb)


def _turn(header: ImageHeader, pixels: NDArray[Pixel]) -> NDArray[Pixel]:
    """Apply the header's orientation; Pillow and OpenCV have done so already for TIFF, and for no other format."""
    return pixels if header.is_tiff else header.orientation.apply(pixels)


def _check_size(header: ImageHeader, pixels: NDArray[Pixel]) -> NDArray[Pixel]:
    """Assert that our header and the decoder agree on the displayed size."""
    assert pixels.shape[:2] == (header.height, header.width), f"{header.path}: {pixels.shape} is not {header}"
    return pixels
