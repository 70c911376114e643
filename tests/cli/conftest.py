"""The program as a user meets it: run as a process, judged by exit code, output and files."""

import json
import os
import pathlib
import re
import subprocess
import textwrap

import pytest

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
