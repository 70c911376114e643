"""The program on several ranks, started by mpirun, and beside it on one: what tests of ranks share."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import EXECUTABLE

MPIRUN = shutil.which("mpirun")
# Looking for networks that one machine does not need takes a quarter of a second a run; so do its other parts that no rank uses here:
# graphics and OpenCL, which hwloc looks for, files and windows of MPI, and shared memory for what the launcher tells.
for name, value in {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "^openib,tcp,uct,ofi,usnic", "OMPI_MCA_io": "^ompio,romio321", "OMPI_MCA_osc": "^ucx,rdma,pt2pt",
                    "PMIX_MCA_gds": "hash", "HWLOC_PLUGINS_PATH": "/nonexistent"}.items():
    os.environ.setdefault(name, value)
LIBRARY = pathlib.Path(EXECUTABLE).with_name("libpoisson_mpi.so")
pytestmark = pytest.mark.skipif(MPIRUN is None or not LIBRARY.exists(), reason="no mpirun, or built without MPI")

# Every condition, a coefficient and a source that vary; blocks of different sizes.
VARIED = """
problem:
  mesh: {generator: box, origin: [-0.5, 0, 0.25], extent: [1.5, 1, 2], cells: [15, 13, 16]}
  coefficient: "1 + x*x + 0.5*y"
  source: "sin(3*x) + y*z"
  boundary:
    - {ids: [0, 3], type: dirichlet, value: "x + 2*y - z"}
    - {ids: [1], type: neumann, value: "y"}
    - {ids: [2, 4], type: robin, alpha: "2 + z", value: "1 - x"}
    - {ids: [5], type: dirichlet, value: "1"}
  exact: "x*y + z"
solver: {preconditioner: jacobi}
output: {picture: false}
"""
BALL = """
problem:
  mesh: {generator: hyper_ball, refinements: 2, boundaries: [{name: top, where: "z > 0.3"}]}
  coefficient: "1 + x*x"
  source: "1 + y"
  boundary:
    - {names: [top], type: dirichlet, value: "x"}
    - {ids: all, type: robin, alpha: "1", value: "z"}
  exact: "x*y + z"
solver: {preconditioner: jacobi}
output: {picture: false, quantities: {share: "flux.top / area.top"}}
"""


def ranks_command(n, *words):
    return [MPIRUN, "-n", str(n), "--oversubscribe", "--allow-run-as-root", EXECUTABLE, *map(str, words)]


def on_ranks(poisson, n, *words, code=0, **kwargs):
    done = subprocess.run(ranks_command(n, *words), cwd=poisson.directory, text=True, capture_output=True, timeout=300,
                          stdin=subprocess.DEVNULL, **kwargs)
    assert done.returncode == code, f"{words}: exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
    return done


def both(poisson, problem, n, *settings):
    """The records of one rank and of n, in the folders `one` and `ranks`; `problem` is a configuration or its file."""
    config = problem if isinstance(problem, pathlib.Path) else poisson.write(problem)
    words = ("run", config, "--backend", "cpu", "--quiet", "--overwrite", *(f"--set={s}" for s in settings), "--output")
    poisson(*words, "one")
    on_ranks(poisson, n, *words, "ranks")
    return poisson.record("one"), poisson.record("ranks")


def errors_told(done):
    return [line for line in done.stderr.splitlines() if line.startswith("poisson: error: ")]


def residuals(poisson, directory):
    lines = (poisson.directory / directory / "residuals.csv").read_text().splitlines()[1:]
    return [float(line.split(",")[1]) for line in lines]


def read_pieces(path):
    from vtkmodules import vtkIOXML

    reader = {".pvti": vtkIOXML.vtkXMLPImageDataReader, ".pvtr": vtkIOXML.vtkXMLPRectilinearGridReader,
              ".pvtu": vtkIOXML.vtkXMLPUnstructuredGridReader}[path.suffix]()
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    return reader.GetOutputDataObject(0)


def values(data, name, cells=False):
    attributes = data.GetCellData() if cells else data.GetPointData()
    array = attributes.GetArray(name)
    assert array is not None, name
    return [array.GetTuple(i) for i in range(array.GetNumberOfTuples())]


def compare_records(one, other, n):
    assert other["ranks"] == n and one["ranks"] == 1
    for key in ("status", "dofs", "nnz", "order"):
        assert other[key] == one[key], key
    assert other["mesh"] == one["mesh"]
    assert abs(other["solver"]["iterations"] - one["solver"]["iterations"]) <= 1
    assert other["solver"]["residual_true"] <= 3e-12
    for name, error in one["errors"].items():
        assert other["errors"][name] == pytest.approx(error, rel=1e-7), name
    for name, quantity in one["quantities"].items():
        assert other["quantities"][name] == pytest.approx(quantity, rel=1e-7, abs=1e-9), name


def ranks_of(process):
    """The processes of the ranks below mpirun."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in children]


SYMMETRIC = """%%MatrixMarket matrix coordinate real symmetric
{n} {n} {nnz}
{entries}
"""


def write_chain(poisson, n, name="chain.mtx"):
    """A chain of couplings, some to the row 50 before, and a little more on the diagonal."""
    entries = {}
    for i in range(n):
        for j in (i - 1, i - 50):
            if j >= 0 and (j == i - 1 or i % 7 == 0):
                entries[i, j] = -1.0 - 0.1 * (i % 4)
                for k in (i, j):
                    entries[k, k] = entries.get((k, k), 0) - entries[i, j]
        entries[i, i] = entries.get((i, i), 0) + 0.01 * (1 + i % 3)
    lines = [f"{i + 1} {j + 1} {v!r}" for (i, j), v in entries.items()]
    (poisson.directory / name).write_text(SYMMETRIC.format(n=n, nnz=len(lines), entries="\n".join(lines)))
    return name
