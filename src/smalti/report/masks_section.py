"""The section of the report on masks: what was not taken for the scene in some frames, by colours."""

from __future__ import annotations

import base64

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.visibility import Part, PartFinder, Parts
from smalti.project.project import Project
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element, say_number

LOOKED_AT, SHOWN = 6, 2
"""Frames spread over the mosaics; of these, the ones with the most that is masked in them alone are shown."""

SIDE = 480
"""Pixels of the pictures' longer side, at most."""

QUALITY = 80

KINDS = {
    Part.SURROUND: ("outside the field of view", (66, 99, 235)),
    Part.OVERLAY: ("text, logo or dirt that stands still in the frame", (18, 165, 90)),
    Part.HIGHLIGHT: ("highlight", (250, 190, 20)),
    Part.TOOL: ("tool", (214, 40, 120)),
    Part.PAINTED: ("black in the mask that was given", (120, 70, 200)),
}

MEANING = (
    "Coloured pixels are not matched. The mosaic shows these places as other frames see them. Where none sees more, "
    "a highlight is drawn, and everything else stays open."
)
REMEDY = (
    "If colours lie on the scene, build again with --mask none into another folder. If something is missed that is not "
    "scene, paint it black in a mask: --mask FILE for what is the same in all frames, --mask FOLDER with a mask for "
    "every frame for what moves."
)


def draw_masks(project: Project, findings: Findings) -> Markup:
    """Return the section, empty if nothing is masked."""
    finder = project.finder
    if finder is None or not findings.placements or (project.own_masks is None and project.mask is None):
        return Markup()
    found = _look_at_some(project, finder, sorted(findings.placements))
    if not found:
        return Markup()
    pictures = [
        element(
            "figure",
            element("img", src=_draw(image, parts), alt=f"frame {number} with colours over what is masked"),
            element("figcaption", f"frame {number}: {_say_shares(parts)}"),
        )
        for number, image, parts in found
    ]
    kinds = sorted({kind for _, _, parts in found for kind in np.unique(parts).tolist()} - {Part.SCENE})
    legend = [
        element(
            "li", element("span", class_="key cell", style=f"color:rgb{KINDS[Part(kind)][1]}"), KINDS[Part(kind)][0]
        )
        for kind in kinds
    ]
    return element(
        "section",
        element("h2", "What was masked"),
        element("p", MEANING),
        element("ul", *legend, class_="legend"),
        element("div", *pictures, class_="panels"),
        element("p", REMEDY, class_="quiet"),
        id="masked",
    )


def _look_at_some(
    project: Project, finder: PartFinder, placed: list[int]
) -> list[tuple[int, NDArray[np.uint8], Parts]]:
    """Return number, pixels and parts of the frames to show, ascending; none if the source is not there any more."""
    chosen = np.unique(np.linspace(0, len(placed) - 1, LOOKED_AT).round().astype(int))
    shared = project.mask
    found: list[tuple[int, int, NDArray[np.uint8], Parts]] = []
    try:
        for number, image in project.source.read_many([placed[n] for n in chosen]):
            parts = finder.find_parts(number, image)
            own = parts != Part.SCENE if shared is None else (parts != Part.SCENE) & shared
            found.append((int(own.sum()), number, image, parts))
            found = sorted(found, key=lambda one: (-one[0], one[1]))[:SHOWN]
    except InputError:
        return []
    return sorted((one[1:] for one in found), key=lambda one: one[0])


def _say_shares(parts: Parts) -> str:
    shares = {kind: float((parts == kind).mean()) for kind in KINDS}
    said = [f"{say_number(100 * share, 1)} % {KINDS[kind][0]}" for kind, share in shares.items() if share]
    return ", ".join(said) or "nothing is masked"


def _draw(image: NDArray[np.uint8], parts: Parts) -> str:
    """Return the address of a small picture with colours over the parts."""
    factor = min(1.0, SIDE / max(parts.shape))
    size = (max(1, round(factor * parts.shape[1])), max(1, round(factor * parts.shape[0])))
    small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.float32)
    kinds = np.asarray(cv2.resize(parts, size, interpolation=cv2.INTER_NEAREST))
    for kind, (_, colour) in KINDS.items():
        small[kinds == kind] = 0.4 * small[kinds == kind] + 0.6 * np.array(colour, np.float32)
    pixels = np.rint(small).astype(np.uint8)
    done, encoded = cv2.imencode(".jpg", pixels[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, QUALITY))
    assert done, "an image of 8 bits can be encoded"
    return f"data:image/jpeg;base64,{base64.b64encode(encoded.tobytes()).decode()}"
