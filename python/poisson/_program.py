"""The program as a process: where it is, how it is started, listened to and stopped."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
from typing import IO, Callable, List, NamedTuple, Optional, Sequence, Union

from ._errors import EnvironmentError

Progress = Union[bool, Callable[[str], None]]

# Seconds that an interrupted program has to write what it has computed; a second Ctrl-C ends the waiting.
_TO_FINISH = 60.0
_TO_END = 5.0


class Ended(NamedTuple):
    """How the program ended, and what it printed."""

    exit_code: int
    out: str
    err: str


def executable() -> pathlib.Path:
    """The program: $POISSON_EXECUTABLE, or `poisson` on PATH, or that of the installation or source folder that this package lies in.

    Errors: EnvironmentError, which names these places.
    """
    named = os.environ.get("POISSON_EXECUTABLE")
    if named:
        if not shutil.which(named):
            raise EnvironmentError(f"POISSON_EXECUTABLE is '{named}', which is no program")
        return pathlib.Path(named)
    found = shutil.which("poisson")
    if found:
        return pathlib.Path(found)
    for folder in pathlib.Path(__file__).resolve().parents[1:]:
        for place in ("bin/poisson", "build/default/app/poisson"):
            if shutil.which(str(folder / place)):
                return folder / place
    raise EnvironmentError("the program 'poisson' is not found: neither on PATH, nor beside this package; POISSON_EXECUTABLE names its file")


def run_program(arguments: Sequence[str], *, text: Optional[str] = None, progress: Progress = False, launcher: Sequence[str] = ()) -> Ended:
    """Runs the program, with `text` on standard input, and shows what it prints line by line.

    When an exception comes, KeyboardInterrupt above all, the program is stopped: it may write what it has, and nothing of it is left
    running. Errors: EnvironmentError where it cannot be started; what `progress` raises.
    """
    command = [*launcher, str(executable()), *arguments]
    show = _show if progress is True else progress or None
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL if text is None else subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    except OSError as error:
        raise EnvironmentError(f"'{command[0]}' cannot be started: {error.strerror}") from error
    assert process.stdout is not None and process.stderr is not None
    printed: List[str] = []
    errors: List[str] = []
    listener = threading.Thread(target=errors.extend, args=(process.stderr,), daemon=True)
    listener.start()
    try:
        if process.stdin is not None and text is not None:
            try:
                process.stdin.write(text)
                process.stdin.close()
            except BrokenPipeError:  # it ended before; its exit code says why
                pass
        for line in process.stdout:
            printed.append(line)
            if show:
                show(line.rstrip("\n"))
        process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        listener.join(_TO_END)
        for stream in (process.stdout, process.stderr):
            if process.poll() is not None and not listener.is_alive():
                stream.close()
    return Ended(process.returncode, "".join(printed), "".join(errors))


def _show(line: str) -> None:
    print(line, file=sys.stdout, flush=True)


def _stop(process: "subprocess.Popen[str]") -> None:
    """SIGINT, after which the program writes what it has; then SIGTERM, then SIGKILL."""
    if process.stdout is not None:
        threading.Thread(target=_drain, args=(process.stdout,), daemon=True).start()  # what it still prints must not make it wait
    for number, seconds in ((signal.SIGINT, _TO_FINISH), (signal.SIGTERM, _TO_END)):
        process.send_signal(number)
        try:
            process.wait(seconds)
            return
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            pass
    process.kill()
    process.wait()


def _drain(stream: IO[str]) -> None:
    try:
        for _ in stream:
            pass
    except ValueError:  # closed meanwhile
        pass
