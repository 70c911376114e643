"""Exceptions and warnings, and how they are read from what the program prints."""

from __future__ import annotations

import re
from typing import Any, List, Optional, Tuple

# A key path, as problem.boundary[0].value.
_KEY = r"[A-Za-z_]\w*(?:\.\w[\w-]*|\[\d+\])*"
_OF_CASE = re.compile(r"\d+ of \d+ cases failed; case \d+: ")
_OF_SET = re.compile(rf"--set (?P<set>.*?): (?P<key>{_KEY}): (?P<text>.*)", re.DOTALL)
_OF_FILE = re.compile(rf"(?P<file>[^\n]+?):(?P<line>\d+)(?::(?P<column>\d+))?: (?:(?P<key>{_KEY}): )?(?P<text>.*)", re.DOTALL)
_OF_KEY = re.compile(rf"(?:(?P<file>[^\n:]+): )?(?P<key>(?:problem|parameters|matrix|solver|analysis|output|sweep|backend|include)(?![\w-])(?:\.\w[\w-]*|\[\d+\])*): "
                     r"(?P<text>.*)", re.DOTALL)


class PoissonError(Exception):
    """What ended the program. `str()` is its whole message.

    exit_code: as the program ended; negative: the number of the signal that killed it.
    result: a Result, or the table of a sweep, where the program has written results nevertheless; else None.
    """

    def __init__(self, message: str, exit_code: int = 3, result: Any = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.result = result


class InputError(PoissonError, ValueError):
    """The configuration, or a file that it names, is wrong (exit code 1).

    key: key path, as "problem.boundary[0].value"; None where the message names none.
    file, line, column: the place, counted from 1; None where there is none. Of a configuration that was given as a dict the file is
        "<dict>", and lines are those of `text`.
    set: the setting "key.path=value" that is wrong, or None.
    reason: the message without key and place.
    text: the YAML text of a configuration that was given as a dict, else None.
    """

    def __init__(self, message: str, exit_code: int = 1, result: Any = None, text: Optional[str] = None) -> None:
        if text is not None:
            message = message.replace("<stdin>", "<dict>")
        super().__init__(message, exit_code, result)
        self.key: Optional[str] = None
        self.file: Optional[str] = None
        self.line: Optional[int] = None
        self.column: Optional[int] = None
        self.set: Optional[str] = None
        self.reason = message
        self.text = text
        case = _OF_CASE.match(message)
        for pattern in (_OF_SET, _OF_FILE, _OF_KEY):
            found = pattern.fullmatch(message, case.end() if case else 0)
            if found:
                parts = found.groupdict()
                self.key, self.file, self.set, self.reason = parts.get("key"), parts.get("file"), parts.get("set"), parts["text"]
                self.line, self.column = (int(parts[name]) if parts.get(name) else None for name in ("line", "column"))
                break


class EnvironmentError(PoissonError, RuntimeError):
    """The machine cannot do it: no program, no device, no memory, a file that cannot be written (exit code 3), or a crash."""


class NotConverged(PoissonError, RuntimeError):
    """The solver did not reach its tolerance (exit code 2), where `must_converge` was asked for. `result` has what there is."""


class Interrupted(PoissonError):
    """A signal from elsewhere has stopped the program (exit code 128 + signal). `result` has what there is. Ctrl-C is
    KeyboardInterrupt, as ever."""


class PoissonWarning(UserWarning):
    """A warning of the program."""


class NotConvergedWarning(PoissonWarning):
    """The solver did not reach its tolerance, and the result is not as accurate as was asked for."""


def messages_in(printed: str) -> Tuple[List[str], List[str]]:
    """The errors and the warnings in what the program printed on standard error. A message may have several lines."""
    errors: List[str] = []
    warnings: List[str] = []
    for part in re.split(r"^(?=poisson: )", printed, flags=re.MULTILINE):
        for start, messages in (("poisson: error: ", errors), ("poisson: warning: ", warnings)):
            if part.startswith(start):
                messages.append(part[len(start):].rstrip())
    return errors, warnings
