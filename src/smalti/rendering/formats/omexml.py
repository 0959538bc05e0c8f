"""OME-XML, by which microscopists' programs know an image's axes and the size of its pixels."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np

from smalti.rendering.formats.bands import Caption


def describe(caption: Caption, width: int, height: int, samples: int, dtype: np.dtype[Any]) -> bytes:
    """Return the description of an image with so many samples a pixel, in ASCII as TIFF demands."""
    root = ElementTree.Element(
        "OME",
        {
            "xmlns": _NAMESPACE,
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:schemaLocation": f"{_NAMESPACE} {_NAMESPACE}/ome.xsd",
            "Creator": "Smalti",
        },
    )
    image = ElementTree.SubElement(root, "Image", ID="Image:0", Name=caption.name)
    sizes = {"SizeX": width, "SizeY": height, "SizeC": samples, "SizeZ": 1, "SizeT": 1}
    pixels = ElementTree.SubElement(
        image,
        "Pixels",
        {
            "ID": "Pixels:0",
            "DimensionOrder": "XYCZT",
            "Type": _TYPES[dtype.name],
            **{name: str(size) for name, size in sizes.items()},
            # The samples of a pixel stand together.
            "Interleaved": "true",
            **_physical_size(caption),
        },
    )
    ElementTree.SubElement(pixels, "Channel", ID="Channel:0:0", SamplesPerPixel=str(samples))
    ElementTree.SubElement(pixels, "TiffData", IFD="0", PlaneCount="1")
    text = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=False)
    return b'<?xml version="1.0" encoding="UTF-8"?>' + bytes(text)


_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_TYPES = {"uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "float32": "float"}


def _physical_size(caption: Caption) -> dict[str, str]:
    if caption.pixel_sides_um is None:
        return {}
    across, down = caption.pixel_sides_um
    return {
        "PhysicalSizeX": repr(float(across)),
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": repr(float(down)),
        "PhysicalSizeYUnit": "µm",
    }
