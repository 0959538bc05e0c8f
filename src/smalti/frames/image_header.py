"""What an image file says of itself before its pixels are read."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from smalti.errors import InputError
from smalti.frames.orientation import Orientation

_EIGHT_BIT_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX"}
_SIXTEEN_BIT_MODES = {"I;16", "I;16B", "I;16L", "I", "LA", "RGB", "RGBA", "RGBX"}
_FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "WEBP", "GIF")

# Tags of TIFF, and of EXIF, which is TIFF inside other formats.
_SUBFILE, _WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC = 254, 256, 257, 258, 262
_ORIENTATION, _PLANAR, _SAMPLE_FORMAT = 274, 284, 339
_PNG_BIT_DEPTH_BYTE = 24


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The size as shown, the bits a sample (8 or 16), and what decoding needs to know."""

    path: Path
    width: int
    height: int
    bits: int
    mode: str
    orientation: Orientation
    white_is_zero: bool
    is_tiff: bool
    separate_planes: bool


def read_header(path: Path) -> ImageHeader:
    """Read the header alone; refuse what cannot become a frame."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on damaged EXIF entries, of which only the orientation matters here
            if path.stat().st_size == 0:
                raise InputError(f"{path}: is empty; copy it again or remove it")
            with Image.open(path, formats=_FORMATS) as image:
                return _describe(path, image)
    except UnidentifiedImageError:
        raise InputError(f"{path}: is not an image that can be read; convert or remove it") from None
    except Image.DecompressionBombError:
        raise InputError(f"{path}: is too large; make it smaller") from None
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, EOFError):
        raise InputError(f"{path}: cannot be read as an image; copy it again, convert or remove it") from None


def _describe(path: Path, image: Image.Image) -> ImageHeader:
    mode = image.mode
    tags = getattr(image, "tag_v2", {})
    # Not image.getexif(): for PNG that decodes the whole picture in search of a late entry.
    orientation = Orientation.from_exif(Image.Image.getexif(image).get(_ORIENTATION, 1))
    # Some versions of Pillow swap the size of a turned TIFF by themselves: the tags do not.
    stored = (tags[_WIDTH], tags[_HEIGHT]) if tags else image.size
    width, height = orientation.apply_to_size(*stored)
    bits = _count_bits(path, image)
    if mode in ("CMYK", "YCCK", "LAB", "HSV"):
        raise InputError(f"{path}: has the colours of print ({mode}); convert it to RGB")
    if bits not in (8, 16) or mode not in (_SIXTEEN_BIT_MODES if bits == 16 else _EIGHT_BIT_MODES):
        raise InputError(f"{path}: has samples of {bits} bits (mode {mode}); convert it to 8 or 16 bits, gray or RGB")
    if tags and any(kind != 1 for kind in tags.get(_SAMPLE_FORMAT, (1,))):
        raise InputError(f"{path}: has signed or fractional samples; convert it to 8 or 16 bits, gray or RGB")
    pages = _count_pages(image)
    if pages > 1:
        raise InputError(f"{path}: holds {pages} pictures; save each as an image of its own, or the whole as a video")
    white_is_zero = bool(tags) and bits == 16 and tags.get(_PHOTOMETRIC) == 0
    return ImageHeader(
        path, width, height, bits, mode, orientation, white_is_zero, bool(tags), tags.get(_PLANAR, 1) == 2
    )


def _count_bits(path: Path, image: Image.Image) -> int:
    """Return the bits a sample, where fewer than 8 count as 8."""
    if image.format == "TIFF":
        found: int = max(getattr(image, "tag_v2", {}).get(_BITS, (1,)))
    elif image.format == "PNG":
        with path.open("rb") as file:
            found = file.read(_PNG_BIT_DEPTH_BYTE + 1)[_PNG_BIT_DEPTH_BYTE]
    else:
        found = 8
    return max(8, found)


def _count_pages(image: Image.Image) -> int:
    """Count the pictures, without the previews that cameras and microscopes put beside them."""
    # The JPEG of many cameras is MPO: a photograph first, then its previews.
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
