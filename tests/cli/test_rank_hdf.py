"""One .hdf file of the pieces of all ranks, as VTK reads it: the solution of one rank."""

import subprocess

import pytest
from conftest import EXECUTABLE, read_vtk
from ranks import VARIED, compare_records, errors_told, on_ranks, pytestmark, ranks_command, values  # noqa: F401

BALL = """
problem:
  mesh: {generator: hyper_ball, refinements: 2}
  coefficient: "1 + x*x"
  source: "1 + y"
  boundary: [{ids: all, type: dirichlet, value: "x*z"}]
  exact: "x + y"
solver: {preconditioner: jacobi}
output: {picture: false}
"""


def rounded(point):
    return tuple(round(x, 9) + 0.0 for x in point)


def at_points(data):
    """u and the flux by place; pieces have points on their rims several times, with the same values."""
    found = {}
    for i, (u, flux) in enumerate(zip(values(data, "u"), values(data, "flux_points"))):
        other = found.setdefault(rounded(data.GetPoint(i)), (*u, *flux))
        assert other == pytest.approx((*u, *flux), rel=1e-9, abs=1e-11)
    return found


def at_cells(data):
    places = (data.GetCell(i).GetBounds() for i in range(data.GetNumberOfCells()))
    return {rounded(place): (*flux, *material) for place, flux, material in zip(places, values(data, "flux", cells=True),
                                                                                  values(data, "material", cells=True))}


@pytest.mark.parametrize("n, text, settings", ids=["box", "order 2", "plain", "ball", "single", "idle ranks"], argvalues=[
    (5, VARIED, []), (3, VARIED, ["problem.element.order=2", "problem.mesh.cells=[7,6,5]"]),
    (2, VARIED, ["output.vtk.compression=none"]), (2, BALL, []),
    (3, BALL, ["output.vtk.precision=single", "output.vtk.compression=best"]), (5, VARIED, ["problem.mesh.cells=[1,1,3]"])])
def test_the_file_is_that_of_one_rank(poisson, n, text, settings):
    config = poisson.write(text)
    fields = "output.vtk.fields=[u, exact, error, material, coefficient, flux, flux_points]"
    words = ("run", config, "--backend", "cpu", "--quiet", *(f"--set={s}" for s in ("output.vtk.format=hdf", fields, *settings)))
    poisson(*words, "--output", "one")
    on_ranks(poisson, n, *words, "--output", "ranks")
    one, other = poisson.record("one"), poisson.record("ranks")
    compare_records(one, other, n)
    files = [name for name in other["files"] if name.startswith("solution")]
    assert files == ["solution.hdf"] and sorted(p.name for p in (poisson.directory / "ranks").glob("solution*")) == files
    whole, pieces = (read_vtk(poisson.directory / name / "solution.hdf") for name in ("one", "ranks"))
    assert pieces.GetNumberOfCells() == whole.GetNumberOfCells() > 0 and pieces.GetNumberOfPoints() >= whole.GetNumberOfPoints()
    single = any("single" in setting for setting in settings)
    for read in (at_points, at_cells):
        expected, found = read(whole), read(pieces)
        assert expected.keys() == found.keys()
        for place, value in expected.items():
            assert found[place] == pytest.approx(value, rel=1e-4 if single else 1e-7, abs=1e-5 if single else 1e-8)


def test_arrays_longer_than_a_message(poisson):
    config = poisson.write(VARIED)
    words = ("run", config, "--backend", "cpu", "--quiet", "--set", "problem.mesh.cells=[40,40,40]", "--set", "output.vtk.format=hdf",
             "--set", "solver.preconditioner=multigrid")
    poisson(*words, "--output", "one")
    on_ranks(poisson, 2, *words, "--output", "ranks")
    whole, pieces = (read_vtk(poisson.directory / name / "solution.hdf") for name in ("one", "ranks"))
    assert pieces.GetNumberOfCells() == whole.GetNumberOfCells() == 64000
    total = [sum(v[0] for v in values(data, "flux", cells=True)) for data in (whole, pieces)]
    assert total[1] == pytest.approx(total[0], rel=1e-8)
    assert pieces.GetBounds() == pytest.approx(whole.GetBounds())


def test_the_pieces_are_one_mesh_again(poisson):
    """Every rank writes nodes of its own; as a mesh they are joined."""
    poisson.write("""
        problem:
          mesh: {generator: box, cells: [8, 4, 4], extent: [2, 1, 1]}
          source: "1"
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        output: {picture: false, report: false, vtk: {format: hdf}}
        """)
    on_ranks(poisson, 2, "run", "case.yaml", "--backend", "cpu", "--quiet", "--output", "first")
    words = ("run", "case.yaml", "--backend", "cpu", "--quiet", "--set", "problem.mesh={file: first/solution.hdf}")
    done = poisson(*words, "--output", "again")
    assert "25 nodes coincide with others and were joined" in done.stderr
    q = poisson.record("again")["quantities"]
    assert q["max"] == pytest.approx(0.0763252, abs=1e-7) and q["mean"] == pytest.approx(0.0246621, abs=1e-7) and q["area.0"] == pytest.approx(10)
    poisson(*words, "--output", "apart", "--set", "problem.mesh.join=false")
    assert any("2 parts that have no node in common, of 64 and 64 cells" in w for w in poisson.record("apart")["warnings"])


def test_a_file_that_cannot_be_written_is_told_once(poisson):
    config = poisson.write(VARIED)
    words = ranks_command(2, "run", config, "--backend", "cpu", "--output", "out", "--set", "output.vtk.format=hdf", "--set",
                          "problem.mesh.cells=[24,24,24]", "--set", "output.vtk.compression=none")
    at = words.index(EXECUTABLE)
    words[at:at] = ["--mca", "btl", "tcp,self", "sh", "-c", 'ulimit -f 512; exec "$0" "$@"']  # messages that need no file
    done = subprocess.run(words, cwd=poisson.directory, text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 3, done.stderr
    assert len(errors_told(done)) == 1 and "solution.hdf" in done.stderr
    record = poisson.record("out")
    assert [failed["file"] for failed in record["files_failed"]] == ["solution.hdf"] and record["status"] == "converged"
    assert not (poisson.directory / "out/solution.hdf").exists()


@pytest.mark.parametrize("form", ["hdf", "image"])
def test_a_coefficient_that_no_cell_may_have_is_told_once(poisson, form):
    """k is 0 at the centres of some cells of one rank, where only the file asks for it."""
    config = poisson.write("""
        problem:
          mesh: {generator: box, cells: [5, 4, 4]}
          coefficient: "abs(x - 0.9)"
          source: 1
          boundary: [{ids: all, type: dirichlet, value: 0}]
        output: {picture: false}
    """)
    done = on_ranks(poisson, 3, "run", config, "--output", "out", "--quiet", "--set", f"output.vtk.format={form}", code=1)
    told = errors_told(done)
    assert len(told) == 1 and "problem.coefficient" in told[0] and "must be positive" in told[0], done.stderr
