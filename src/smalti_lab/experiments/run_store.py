"""Finished runs on disk, until their study is finished too."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import asdict, astuple
from pathlib import Path

import numpy as np

from smalti import __version__
from smalti.errors import OutputError, UsageError
from smalti_lab.experiments.runs import Row, Run, RunSettings

UNFINISHED = ".unfinished"
"""The folder, in that of the study, that holds finished runs until all are finished."""


def check_matplotlib() -> None:
    """Say in one line what to install, before hours of work that end with a figure."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("figures need matplotlib, which is not installed: pip install 'smalti[lab]'")


def make_folder(folder: Path) -> Path:
    """Make a folder to write to, or say in one line why this is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}), choose another folder") from None
    except RecursionError:  # folders are made one within the other
        raise OutputError(f"{folder}: is nested too deeply, choose another folder") from None
    return folder


def keep(folder: Path, run: Run) -> None:
    """Write a finished run into the study's folder, under a temporary name first."""
    path = _path(folder, run.settings)
    words = {
        "rows": [asdict(row) for row in run.rows],
        "stopped": run.stopped,
        "smallest_area": run.smallest_area,
    }
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                words=np.array(json.dumps(words)),
                true_centres=run.true_centres,
                initial_centres=run.initial_centres,
                final_centres=run.final_centres,
                **{f"picture {name}": picture for name, picture in run.pictures.items()},
            )
        partial.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}), free disk space and start again") from None


def load(folder: Path, run: RunSettings, pictured: bool) -> Run | None:
    """Return a stored run, unless its pictures are wanted and it has none."""
    path = _path(folder, run)
    if not path.exists():
        return None
    with np.load(path) as arrays:
        words = json.loads(str(arrays["words"]))
        pictures = {name.removeprefix("picture "): arrays[name] for name in arrays.files if name.startswith("picture ")}
        if pictured and not pictures:
            return None
        return Run(
            settings=run,
            rows=[Row(**row) for row in words["rows"]],
            stopped=words["stopped"],
            smallest_area=words["smallest_area"],
            true_centres=arrays["true_centres"],
            initial_centres=arrays["initial_centres"],
            final_centres=arrays["final_centres"],
            pictures=pictures,
        )


def clear(folder: Path) -> None:
    """Remove the stored runs, because the study is written."""
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)


def _path(folder: Path, run: RunSettings) -> Path:
    return folder / UNFINISHED / ("_".join(map(str, (*astuple(run), __version__))) + ".npz")
