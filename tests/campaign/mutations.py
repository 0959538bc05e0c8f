"""Ways to damage the content of a file at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

EXTREMES = (
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFE,
    0xFFFFFFFF,
    0x10000,
    65535 * 65535 // 4,
)
HEADER_BYTES = 400


def mutate(content: bytes, rng: np.random.Generator, other: bytes) -> tuple[str, bytes]:
    """Return what was done, and the damaged content; `other` is the content of another file."""
    name = str(rng.choice(list(MUTATIONS)))
    return name, MUTATIONS[name](content, rng, other)


def flip_bits(content: bytes, rng: np.random.Generator, count: int) -> bytes:
    """Flip so many different bits."""
    changed = np.frombuffer(content, dtype=np.uint8).copy()
    bits = rng.choice(8 * len(changed), size=min(count, 8 * len(changed)), replace=False)
    np.bitwise_xor.at(changed, bits // 8, (1 << (bits % 8)).astype(np.uint8))
    return changed.tobytes()


def _cut(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    return content[: rng.integers(len(content))]


def _cut_front(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    return content[rng.integers(1, len(content)) :]


def _scatter(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    return flip_bits(content, rng, int(rng.choice([1, 8, 64, 1000])))


def _flip_header(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    return flip_bits(content[:HEADER_BYTES], rng, int(rng.integers(1, 6))) + content[HEADER_BYTES:]


def _set_field(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """Set fields of 2, 4 or 8 bytes at the beginning, or anywhere, to extremes."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        size = int(rng.choice([2, 4, 8]))
        reach = min(len(content), HEADER_BYTES) if rng.random() < 0.7 else len(content)
        at = int(rng.integers(max(1, reach - size)))
        value = int(rng.choice(EXTREMES)) % 256**size
        changed[at : at + size] = value.to_bytes(size, "big" if rng.random() < 0.5 else "little")
    return bytes(changed)


def _blank(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    first, last = np.sort(rng.integers(len(content) + 1, size=2))
    return content[:first] + bytes([int(rng.choice([0, 255]))]) * int(last - first) + content[last:]


def _swap(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    a, b, c, d = np.sort(rng.integers(len(content) + 1, size=4))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _repeat(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    first, last = np.sort(rng.integers(len(content) + 1, size=2))
    return content[:last] + content[first:last] * int(rng.integers(1, 20)) + content[last:]


def _splice(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    return content[: rng.integers(len(content))] + other[rng.integers(len(other)) :]


def _insert(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    at = rng.integers(len(content))
    return content[:at] + rng.bytes(int(rng.choice([1, 4, 1000]))) + content[at:]


def _empty(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    return rng.bytes(int(rng.choice([0, 1, 20, 5000])))


MUTATIONS: dict[str, Callable[[bytes, np.random.Generator, bytes], bytes]] = {
    "cut off": _cut,
    "beginning cut off": _cut_front,
    "bits flipped": _scatter,
    "bits of the header flipped": _flip_header,
    "fields set to extremes": _set_field,
    "a range blank": _blank,
    "two ranges swapped": _swap,
    "a range repeated": _repeat,
    "spliced with another file": _splice,
    "bytes put in": _insert,
    "noise instead": _empty,
}
