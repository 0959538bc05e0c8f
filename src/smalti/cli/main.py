"""`smalti`: the entry of the program, which can be interrupted from its first moment on.

Nothing is imported here that takes time: the handlers of the signals come first, the command line after them.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as typing has it; importing typing takes longer than all of the above
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for an error, 2 for a wrong call, 128 + n for a signal."""
    received = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if _is_importing(frame):
            # Importing would turn the interruption into other errors, or lose it.
            os.write(2, b"smalti: interrupted\n")
            os._exit(128 + number)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # nohup, and a shell's &, have the program ignore signals.
    handled = [number for number, handler in before.items() if handler not in (None, signal.SIG_IGN)]
    try:
        for number in handled:
            signal.signal(number, end)
    except ValueError:
        handled = []  # not in the main thread: signals are somebody else's
    try:
        from smalti.cli.command_line import run  # noqa: PLC0415

        code = run(arguments)
    finally:
        for number in handled:
            # The program itself is over: a late signal must not interrupt Python while it cleans up.
            signal.signal(number, signal.SIG_DFL if arguments is None else before[number])
    return 128 + received[-1] if code == 128 + signal.SIGINT and received else code


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    sys.exit(main())
