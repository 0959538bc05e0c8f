"""A project to answer in, prepared once a file of tests."""

from __future__ import annotations

import pytest

from tests.annotation.people import fresh


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tmp_path_factory.mktemp("annotation")


@pytest.fixture
def folder(base, tmp_path):
    return fresh(base, tmp_path)
