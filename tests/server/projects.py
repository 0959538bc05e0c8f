"""A small project of which the truth is known, prepared once, and a dispatcher with a session on a copy of it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import cache

from smalti.annotation.session import Session
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.filmed import tiny
from tests.server.dispatchers import new_dispatcher

PATIENCE_SECONDS = 60


@cache
def prepared_tiny(base):
    """Return the folder of a project of 12 frames about which nothing was answered; a test works on a copy."""
    folder = base / "tiny.smalti"
    Session.open(write_video(tiny(), base / "tiny.mp4"), folder).close()
    return folder


@contextmanager
def real_desk(prepared, to):
    """A dispatcher with a session on a copy of a project, and the session."""
    folder, dispatcher, sessions = shutil.copytree(prepared, to), new_dispatcher(), []

    def opening(progress, on_change):
        sessions.append(Session.prepare(folder, progress=progress, on_change=on_change))
        return sessions[0]

    dispatcher.open(opening).result(PATIENCE_SECONDS)
    try:
        yield dispatcher, sessions[0]
    finally:
        assert dispatcher.close(PATIENCE_SECONDS)
