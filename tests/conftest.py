"""Which tests come first: those that take long, so that no worker is left alone with them; threads; properties."""

from __future__ import annotations

import os

import hypothesis

# There is a worker a core: more threads of theirs would wait for each other, and BLAS does so by spinning. It is read
# when numpy is imported, by workers and programs that tests start too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples every time, however long one takes: the first may have to wait for a kernel to be compiled.
hypothesis.settings.register_profile("smalti", derandomize=True, deadline=None)
hypothesis.settings.load_profile("smalti")

LONG = (
    "tests/server/test_durability.py",
    "tests/server/test_killed",
    "tests/test_wheel.py",
    "tests/page/",
    "tests/campaign/",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not any(name in item.path.as_posix() for name in LONG))
