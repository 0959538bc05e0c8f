"""The command line as it is, but for the page, which need not be built for these tests."""

from __future__ import annotations

import sys

from smalti.cli.main import main
from smalti.server import serving
from tests.server.dispatchers import PAGE


def run(words: list[str]) -> int:
    """Run a command in this process, which is its own."""
    serving.read_page = lambda: PAGE
    return main(words)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
