"""Which tests come first: those that take long, so that no worker is left alone with them at the end."""

from __future__ import annotations

LONG = ("tests/server/test_durability.py", "tests/server/test_killed", "tests/test_wheel.py", "tests/page/")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not any(name in item.path.as_posix() for name in LONG))
