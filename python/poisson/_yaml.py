"""Configurations as YAML. Words are not quoted, because to the program "auto" in quotes is a text like any other."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Mapping

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[./-][A-Za-z0-9_]+)*")
_NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def _text(value: str) -> str:
    plain = _WORD.fullmatch(value) and value.lower() not in _NOT_TEXT
    return value if plain else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as those of Python; tuples as lists, paths as texts."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    elif isinstance(value, (tuple, range)):
        value = list(value)
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    return value


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    value = _plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} stands for no number in a configuration")
        return repr(value)
    raise TypeError(f"a configuration has texts, numbers, lists and dicts; found {value!r} of {type(value).__name__}")


def _key(key: Any) -> str:
    key = _plain(key)
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise TypeError(f"a key is a text, or an id; found {key!r}")
    return str(key) if isinstance(key, int) else _text(key)


def to_yaml(configuration: Mapping[str, Any]) -> str:
    """The text that the program reads in place of a dict; line and column of an InputError are those of this text.

    Errors: TypeError for values that YAML does not have, ValueError for numbers that are not finite.
    """
    return "".join(_lines(configuration, ""))


def _lines(mapping: Mapping[Any, Any], indent: str) -> Any:
    for key, item in mapping.items():
        item = _plain(item)
        if isinstance(item, Mapping) and item:
            yield f"{indent}{_key(key)}:\n"
            yield from _lines(item, indent + "  ")
        elif isinstance(item, list) and any(isinstance(_plain(entry), Mapping) for entry in item):
            yield f"{indent}{_key(key)}:\n"
            for entry in item:
                yield f"{indent}  - {flow(entry)}\n"
        else:
            yield f"{indent}{_key(key)}: {flow(item)}\n"
