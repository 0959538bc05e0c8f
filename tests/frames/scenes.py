"""Small scenes, and the videos of them, with known truth."""

from fractions import Fraction

import av
import cv2
import numpy as np

WIDTH, HEIGHT = 128, 96
BITS = 7


def make_scene(height=400, width=500, seed=0, colours=3):
    """A plane with detail at all scales, uint8."""
    rng = np.random.default_rng(seed)
    layers = [
        cv2.resize(rng.normal(0, 1, (height // cell + 2, width // cell + 2, colours)), (width, height)) * cell**0.5
        for cell in (2, 4, 8, 16, 32)
    ]
    scene = sum(layers)
    scene = (scene - scene.mean()) / scene.std() * 45 + 120
    return np.clip(scene, 0, 255).astype(np.uint8)


SCENE = make_scene()


def draw_frame(number):
    """A moving view of the scene, with the frame's number as black and white blocks at the bottom."""
    frame = SCENE[number : number + HEIGHT, 2 * number : 2 * number + WIDTH].copy()
    for bit in range(BITS):
        frame[-16:, bit * 16 : bit * 16 + 16] = 255 if number >> bit & 1 else 0
    return frame


def read_number(image):
    """The number drawn into a frame."""
    height, width = image.shape[:2]
    y = round(height * (1 - 8 / HEIGHT))
    return sum(int(image[y, round((bit * 16 + 8) * width / WIDTH)].mean() > 127) << bit for bit in range(BITS))


def write_video(
    path, codec, frames=60, *, pix_fmt="yuv420p", step=None, rotate=None, draw=draw_frame, container=None, **options
):
    """Encode drawn frames; `step(k)` gives frame k's duration in thirtieths of a second."""
    with av.open(str(path), "w", options=container or {}) as out:
        stream = out.add_stream(codec, rate=30, options={name.replace("_", "-"): str(v) for name, v in options.items()})
        stream.height, stream.width = draw(0).shape[:2]
        stream.pix_fmt = pix_fmt
        if rotate is not None:
            stream.set_display_rotation(*rotate)
        time = 0
        for k in range(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(draw(k)), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 30)
            time += step(k) if step else 1
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def decode_plainly(path):
    """All frames of a video in the order in which a plain decoder gives them."""
    images = []
    with av.open(str(path)) as video:
        for packet in video.demux(video=0):
            try:
                images += [frame.to_ndarray(format="rgb24") for frame in packet.decode()]
            except av.FFmpegError:
                continue
    return images
