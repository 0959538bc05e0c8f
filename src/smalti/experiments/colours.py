"""The colours of strategies in figures."""

from __future__ import annotations

COLOURS = {
    "smalti": "#101820",
    "paper": "#d1495b",
    "external-only": "#30638e",
    "position-only": "#edae49",
    "elibol": "#00798c",
    "sawhney": "#7b5ea7",
    "xia": "#6b705c",
}
OTHER_COLOUR = "#888888"
