"""The command line as it is, but for the page, which need not be built for these tests."""

from __future__ import annotations

import sys

from smalti.cli.main import main
from smalti.server import serving
from tests.server.dispatchers import PAGE

if __name__ == "__main__":
    serving.read_page = lambda: PAGE
    sys.exit(main())
