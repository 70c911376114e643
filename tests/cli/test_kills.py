"""Kills at random moments, a few of those of tests/fuzz/kills.py, with a fixed seed."""

import pathlib
import random
import shutil
import sys

import pytest
from conftest import EXECUTABLE, ROOT

sys.path.insert(0, str(ROOT / "tests/fuzz"))
import kills  # noqa: E402

MPIRUN = shutil.which("mpirun") if pathlib.Path(EXECUTABLE).with_name("libpoisson_mpi.so").exists() else None


def test_nothing_is_lost(tmp_path):
    draw = random.Random(42)
    attempts = kills.Kills(EXECUTABLE, tmp_path / "kills", MPIRUN)
    for number in range(8):
        attempts.kill(number, draw)


def test_what_is_damaged_is_noticed(tmp_path):
    """Of a run by itself, each of its files cut in the middle of its last line."""
    kills.Kills(EXECUTABLE, tmp_path / "kills")
    folder = tmp_path / "kills/reference_sweep"
    noticed = set()
    for path in kills.files(folder):
        whole = path.read_bytes()
        kills.complete(path)
        path.write_bytes(whole[:-3])
        try:
            kills.complete(path)
        except (kills.Fault, ValueError, kills.xml.ParseError):
            noticed.add(path.suffix)
    assert noticed >= {".json", ".pvd", ".vti", ".png", ".html", ".csv", ".yaml"}
