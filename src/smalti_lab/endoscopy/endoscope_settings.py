"""Settings of the endoscopic video. The defaults describe a fetoscopy that a patient person could still mosaic."""

from __future__ import annotations

from dataclasses import dataclass, field

from smalti.errors import UsageError


@dataclass(frozen=True, slots=True)
class Hand:
    """How the scope is moved; lengths in frame pixels. Limits are reached sometimes."""

    slowest_px: float = 3.0  # a frame, between pauses
    fastest_px: float = 12.0
    tremor_px: float = 0.3  # standard deviation of each coordinate, independent from frame to frame
    turn_degrees: float = 35.0  # either way
    zoom: float = 0.18  # either way
    tilt_degrees: float = 7.0  # in any direction
    focal_px: float = 1000.0  # the longer, the less perspective in a tilt
    scale: float = 1.0  # scene pixels a frame pixel, without zoom
    visits: float = 1.5  # how often a place is passed on average: the larger, the smaller the area
    onward: bool = False  # the scope moves on along the scene's longer side and never comes back

    def __post_init__(self) -> None:
        _refuse_outside("hand", self, slowest_px=(0, 1e4), tremor_px=(0, 1e3), turn_degrees=(0, 180), zoom=(0, 1))
        _refuse_outside("hand", self, fastest_px=(self.slowest_px, 1e4), tilt_degrees=(0, 45), focal_px=(1, 1e9))
        _refuse_outside("hand", self, scale=(1e-3, 1e3), visits=(1e-3, 1e3))


@dataclass(frozen=True, slots=True)
class Tissue:
    """How the scene deforms, and how little contrast it has."""

    deformation_px: float = 1.5  # root mean square of each coordinate of the displacement, scene pixels
    cell_px: float = 320.0  # it changes over such a distance
    slowness_frames: float = 120.0  # it changes over such a time
    contrast: float = 9.0  # standard deviation of the tissue's grey levels in full light

    def __post_init__(self) -> None:
        # A stronger deformation could fold the tissue over itself.
        _refuse_outside("tissue", self, deformation_px=(0, self.cell_px / 40), cell_px=(1, 1e6))
        _refuse_outside("tissue", self, slowness_frames=(1, 1e6), contrast=(0, 128))


@dataclass(frozen=True, slots=True)
class Eyepiece:
    """The round field of view; lengths as fractions of half the frame's shorter side."""

    radius: float = 0.94
    offset_x: float = 0.02  # of its centre from the frame's
    offset_y: float = -0.01
    drift: float = 0.0  # how far its centre moves either way
    notch: float = 0.07  # radius of the notch in its rim; 0: none
    notch_degrees: float = 120.0  # position of the notch, clockwise on the screen from the right
    notch_turns: bool = False  # it turns with the scope, relative to the camera

    def __post_init__(self) -> None:
        _refuse_outside("eyepiece", self, radius=(0.05, 2), offset_x=(-0.5, 0.5), offset_y=(-0.5, 0.5), drift=(0, 0.5))
        _refuse_outside("eyepiece", self, notch=(0, 0.5), notch_degrees=(-360, 360))


@dataclass(frozen=True, slots=True)
class Light:
    """The lamp at the scope's tip."""

    vignetting: float = 0.5  # fraction of the light that the rim lacks
    spot: float = 0.35  # fraction of the light that comes from a moving spot
    wetness: float = 1.0  # steepness of the ripples that glint: 0 no highlights, 1.5 very many
    exposure: float = 0.15  # largest change of brightness either way, as a fraction

    def __post_init__(self) -> None:
        _refuse_outside("light", self, vignetting=(0, 1), spot=(0, 1), wetness=(0, 3), exposure=(0, 0.9))


@dataclass(frozen=True, slots=True)
class Camera:
    """The faults of the camera."""

    blur_px: float = 0.7  # standard deviation of a Gaussian, at best
    defocus_px: float = 1.0  # may be added
    motion_blur: float = 0.3  # fraction of the path to the next frame during which the shutter is open
    noise: float = 3.0  # standard deviation in grey levels
    jpeg_quality: int = 80

    def __post_init__(self) -> None:
        _refuse_outside("camera", self, blur_px=(0, 50), defocus_px=(0, 50), motion_blur=(0, 1), noise=(0, 100))
        _refuse_outside("camera", self, jpeg_quality=(1, 100))


@dataclass(frozen=True, slots=True)
class Obstacles:
    """What hides a part of the tissue in some or all frames; nothing by default."""

    tool: float = 0.0  # fraction of the frames that a tool reaches into
    dirt: int = 0  # scratches and specks on the lens, fixed in the frame
    logo: bool = False  # burned in, always the same
    clock: bool = False  # burned in, and it runs

    def __post_init__(self) -> None:
        _refuse_outside("obstacles", self, tool=(0, 1), dirt=(0, 100))


@dataclass(frozen=True, slots=True)
class EndoscopeSettings:
    """Everything that a sequence depends on, besides the scene and the seed."""

    frames: int = 600
    width: int = 470
    height: int = 470
    hand: Hand = field(default_factory=Hand)
    tissue: Tissue = field(default_factory=Tissue)
    eyepiece: Eyepiece = field(default_factory=Eyepiece)
    light: Light = field(default_factory=Light)
    camera: Camera = field(default_factory=Camera)
    obstacles: Obstacles = field(default_factory=Obstacles)
    particles: float = 15.0  # in view at a time, on average
    disturbed: float = 0.0  # fraction of unusable frames, in bursts

    def __post_init__(self) -> None:
        _refuse_outside("endoscope", self, frames=(8, 1e6), width=(16, 1e4), height=(16, 1e4))
        _refuse_outside("endoscope", self, particles=(0, 1000), disturbed=(0, 0.6))


def _refuse_outside(what: str, settings: object, **limits: tuple[float, float]) -> None:
    for name, (least, most) in limits.items():
        value = getattr(settings, name)
        if not least <= value <= most:
            raise UsageError(f"{what}: {name} is {value}, give a number from {least:g} to {most:g}")
