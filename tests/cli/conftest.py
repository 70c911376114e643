"""The program as a user meets it: run as a process, judged by exit code, output and files."""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import textwrap
import time

import pytest

pytest.register_assert_rewrite("ranks")  # helpers whose assertions tell as much as those of tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXECUTABLE = os.environ.get("POISSON_EXECUTABLE", str(ROOT / "build/default/app/poisson"))

CUBE = """
problem:
  mesh: {generator: box, cells: [8, 8, 8]}
  source: "3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)"
  boundary:
    - {ids: all, type: dirichlet, value: "0"}
  exact: "sin(pi*x)*sin(pi*y)*sin(pi*z)"
"""
# Many iterations: a test that stops or interrupts a solve must not come too late on a busy machine.
SLOWLY = "solver: {precision: double_double, preconditioner: none}\nmatrix: {format: csr}\n"


def numbers_of_ranks_in_turn(items):
    """In files test_rank*.py a test has cases for several numbers of ranks, `n`. Of each setting one number is kept, in turn, so that
    every setting and, with enough of them, every number is among them. The next test begins with the next number, so that tests without
    other settings, of which one case is kept, too, take them in turn as well. Of more than six settings every second one is kept:
    processes wait for each other, and all of them take half an hour."""
    tests = collections.defaultdict(lambda: collections.defaultdict(list))
    for item in items:
        parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        n = parameters.pop("n", None) if "/test_rank" in item.nodeid or item.nodeid.startswith("test_rank") else None
        tests[item.nodeid.partition("[")[0]][repr(parameters) if n is not None else item.nodeid].append((n, item))
    chosen = set()
    for first, settings in enumerate(tests.values()):
        of_ranks = all(cases[0][0] is not None for cases in settings.values())
        for turn, cases in enumerate(list(settings.values())[:: 2 if of_ranks and len(settings) > 6 else 1], first):
            chosen.add(sorted(cases, key=lambda case: case[0] or 0)[turn % len(cases)][1].nodeid)
    return [item for item in items if item.nodeid in chosen]


def pytest_collection_modifyitems(config, items):
    if os.environ.get("POISSON_ALL_TESTS") or any("[" in argument for argument in config.args):
        return  # all of them (.ci/full), or a case that somebody names
    chosen = numbers_of_ranks_in_turn(items)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


class Poisson:
    def __init__(self, directory):
        self.directory = directory

    def write(self, text, name="case.yaml"):
        path = self.directory / name
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(textwrap.dedent(text))
        return path

    def command(self, *words):
        return [EXECUTABLE, *map(str, words)]

    def __call__(self, *words, code=0, timeout=300, **kwargs):
        """Runs the program; fails unless it exits with `code`, or one of several."""
        done = subprocess.run(self.command(*words), cwd=self.directory, text=True, capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, **kwargs)
        assert done.returncode in (code if isinstance(code, tuple) else (code,)), f"{words}: exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
        if code in (1, 3):
            assert done.stderr.startswith("poisson: error: "), done.stderr
            assert done.stderr.count("poisson: error: ") == 1, done.stderr
            assert "terminate" not in done.stderr and "Assertion" not in done.stderr, done.stderr
        return done

    def interrupted(self, command, line, seconds=0.0, sent=signal.SIGINT, to=lambda process: process.pid):
        """Starts a command, and sends it (or a process of it) a signal so many seconds after it has printed the line. Returns its
        exit code and errors."""
        process = subprocess.Popen(command, cwd=self.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for printed in process.stdout:
            if line in printed:
                break
        time.sleep(seconds)
        os.kill(to(process), sent)
        _, errors = process.communicate(timeout=120)
        return process.returncode, errors

    def record(self, directory="out"):
        return json.loads((self.directory / directory / "result.json").read_text())


@pytest.fixture
def poisson(tmp_path):
    return Poisson(tmp_path)


@pytest.fixture
def cube(poisson):
    """A program and the path of a small cube with a known solution."""
    return poisson, poisson.write(CUBE, "cube.yaml")


def read_vtk(path):
    """What VTK's reader of this kind of file finds in it."""
    from vtkmodules import vtkIOHDF, vtkIOXML

    reader = {".vtu": vtkIOXML.vtkXMLUnstructuredGridReader, ".vti": vtkIOXML.vtkXMLImageDataReader,
              ".vtr": vtkIOXML.vtkXMLRectilinearGridReader, ".vts": vtkIOXML.vtkXMLStructuredGridReader, ".vtp": vtkIOXML.vtkXMLPolyDataReader,
              ".hdf": vtkIOHDF.vtkHDFReader}[path.suffix]()
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    return reader.GetOutputDataObject(0)


def solution_file(directory):
    """The file for ParaView that the record of a run names."""
    names = [name for name in json.loads((directory / "result.json").read_text())["files"] if re.fullmatch(r"solution\.(vt.|hdf)", name)]
    assert len(names) == 1, names
    pvd = directory / "solution.pvd"
    assert not pvd.exists() if names[0].endswith(".hdf") else names[0] in pvd.read_text()
    return directory / names[0]


def read_solution(directory):
    return read_vtk(solution_file(directory))


def array(attributes, name):
    from vtkmodules.util.numpy_support import vtk_to_numpy

    data = attributes.GetArray(name)
    assert data is not None, f"no array {name}"
    return vtk_to_numpy(data)
