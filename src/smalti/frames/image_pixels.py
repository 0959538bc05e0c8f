"""The pixels of an image file."""

from __future__ import annotations

import io
import zlib
from typing import cast

import cv2
import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageOps

from smalti.errors import InputError
from smalti.frames.image_header import ImageHeader
from smalti.frames.orientation import Pixel


def decode_eight_bits(header: ImageHeader) -> NDArray[np.uint8]:
    """Return uint8 RGB, (h, w, 3), as shown; alpha is dropped."""
    image = _load(header, _read_bytes(header))
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette with transparency has no direct way to RGB
    return _check_size(header, _turn(header, np.asarray(image.convert("RGB"))))


def decode_sixteen_bits(header: ImageHeader) -> NDArray[np.uint16]:
    """Return uint16, gray (h, w) or RGB (h, w, 3), as shown; alpha is dropped."""
    content = _read_bytes(header)
    image = _load(header, content)  # refuses damaged files; has no 16-bit colours of its own
    if image.mode.startswith("I"):
        pixels = _turn(header, np.asarray(image).astype(np.uint16))
    elif header.separate_planes:
        pixels = header.orientation.apply(_decode_planes(header, content))
    else:
        pixels = _decode_colours(header, content)
    return _check_size(header, 65535 - pixels if header.white_is_zero else pixels)


def _read_bytes(header: ImageHeader) -> bytes:
    try:
        return header.path.read_bytes()
    except OSError as error:
        raise InputError(f"{header.path}: cannot be read ({error.strerror}), check the file and your rights") from None


def _load(header: ImageHeader, content: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(content))
        image.load()
        # Pillow turns a TIFF by itself, in some versions: make it so in all.
        return ImageOps.exif_transpose(image) if header.is_tiff else image
    except (OSError, SyntaxError, ValueError, EOFError, zlib.error):
        raise InputError(f"{header.path}: is truncated or damaged; copy it again or remove it") from None


def _decode_planes(header: ImageHeader, content: bytes) -> NDArray[np.uint16]:
    try:
        planes = tifffile.imread(io.BytesIO(content))
    except (ValueError, ImportError):
        raise InputError(
            f"{header.path}: keeps its colours in compressed planes; save it without compression"
        ) from None
    return np.moveaxis(planes[:3], 0, 2)


def _decode_colours(header: ImageHeader, content: bytes) -> NDArray[np.uint16]:
    level = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # on tags it does not know
    try:
        pixels = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    finally:
        cv2.utils.logging.setLogLevel(level)
    if pixels is None or pixels.dtype != np.uint16 or pixels.ndim != 3:
        raise InputError(f"{header.path}: its 16-bit colours cannot be read; save it as 8-bit RGB")
    rgb = cast(NDArray[np.uint16], pixels[:, :, 2::-1])
    return _turn(header, rgb)


def _turn(header: ImageHeader, pixels: NDArray[Pixel]) -> NDArray[Pixel]:
    """Turn the image as its header says; Pillow and OpenCV have done so for a TIFF, and for no other."""
    return pixels if header.is_tiff else header.orientation.apply(pixels)


def _check_size(header: ImageHeader, pixels: NDArray[Pixel]) -> NDArray[Pixel]:
    """Our header and the decoder must agree on the size as shown."""
    assert pixels.shape[:2] == (header.height, header.width), f"{header.path}: {pixels.shape} is not {header}"
    return pixels
