"""Frames that lie on no mosaic: why, and what to try."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnplacedFrame:
    """A frame that lies on no mosaic."""

    frame: int  # its number in the source
    label: str
    reason: str
    try_this: str


_WHAT_TO_TRY = (
    ("cannot be decoded", "copy the file again, or leave the frame out"),
    ("black", "nothing stands out from its noise; if it should show something, record it with more light"),
    ("white", "nothing stands out; if it should show something, record it with less light"),
    ("no contrast", "nothing stands out from its noise; if it should show something, record it with more contrast"),
    ("nearly empty", "let it share more with the frames beside it, or expose it longer"),
    ("frozen", "nothing is missing: another frame shows the same"),
    ("hidden", "look at the field of view: give a mask with --mask, or record this stretch again"),
    ("too blurred", "record this stretch again, slower or in focus"),
    ("almost no detail", "record this stretch again, without haze or blur; or try --registration dense"),
    ("could not be followed", "try --keyframes all"),
    ("no detail", "try --registration dense"),
    ("its keyframes", "place its keyframes: they are in this list too, or try --keyframes all"),
    ("its matches contradict", "look at its matches in smalti annotate, and correct the wrong one"),
    ("matches no other frame", "mark points that it shares with another frame in smalti annotate"),
)


def what_to_try(reason: str) -> str:
    """Return what may help, for the reason why a frame lies on no mosaic."""
    return next(
        (advice for begins, advice in _WHAT_TO_TRY if reason.startswith(begins)),
        "mark points that it shares with another frame in smalti annotate",
    )
