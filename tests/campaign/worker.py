"""A process that has `smalti` loaded and runs one command after another, as `python -m tests.campaign.worker FOLDER`.

It reads the arguments of a command as a line of JSON, and answers with the exit code as a line. What the command says
is in the files `out` and `err` of the folder, also when the process is killed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

from smalti.cli.main import main

ROOT = Path(__file__).parents[2]


def serve(folder: Path) -> None:
    # The command must not read the next request, nor write into the answer.
    requests, answers = io.FileIO(os.dup(0)), io.FileIO(os.dup(1), "w")
    out, err = (os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600) for name in ("out", "err"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()  # a hanging command is aborted and says where it is
    answers.write(b"ready\n")
    for line in io.BufferedReader(requests):
        request = json.loads(line)
        os.truncate(folder / "out", 0)
        os.truncate(folder / "err", 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(request["place"])
        answers.write(f"{run(request['arguments'])}\n".encode())
        os.chdir(ROOT)  # whoever asked may now delete the place


def run(arguments: list[str]) -> int:
    """Run one command as a process of its own would, and return its exit code."""
    try:
        with warnings.catch_warnings():  # entering it makes Python forget which warnings it has shown
            code = main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()  # what the command left open is closed, as it would be at the end of a process
    return code


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
