"""A store, and the same file as somebody else has it open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from smalti.project.answer_store import FILE_NAME, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path / FILE_NAME)) as store:
        yield store


@pytest.fixture
def other(store: Store) -> Iterator[Store]:
    """The same file, as another process has it open."""
    with closing(Store.open(store.path)) as other:
        yield other
