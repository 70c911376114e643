"""What `poisson check` predicts of memory against what a run takes."""

import pathlib
import re
import shutil

import pytest
import ranks

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

PROBLEM = """
problem:
  mesh: {generator: box, cells: [8, 8, 8]}
  source: "1 + x"
  boundary:
    - {ids: all, type: dirichlet, value: "0"}
backend: cpu
output: {picture: false}
"""

# Enough for the solver to keep its best iterate; these runs do not converge.
FEW = "solver.max_iterations=20"
BALL = "problem.mesh={{generator: hyper_ball, refinements: {}}}"
FILE = "problem.mesh={{file: ball.msh, refinements: {}}}"
CASES = {
    "box, multigrid": ["problem.mesh.cells=[80, 80, 80]"],
    "box, with a picture": ["problem.mesh.cells=[72, 72, 72]", "output.picture=true"],
    "box, with a picture of the flux": ["problem.mesh.cells=[72, 72, 72]", "output.pictures=[{name: f, quantity: flux}]"],
    "box, with the flux at nodes": ["problem.mesh.cells=[72, 72, 72]", "output.vtk.fields=[u, flux, flux_points]"],
    "box, without files": ["problem.mesh.cells=[72, 72, 72]", "output.vtk.enabled=false"],
    "box, jacobi": ["problem.mesh.cells=[72, 72, 72]", "solver.preconditioner=jacobi", "solver.tolerance=1e-3"],
    "box, ic0": ["problem.mesh.cells=[48, 48, 48]", "solver.preconditioner=ic0"],
    "box, refined": ["problem.mesh.cells=[64, 64, 64]", "solver.precision=refined"],
    "box, bicgstab": ["problem.mesh.cells=[64, 64, 64]", "solver.method=bicgstab"],
    "box, csr": ["problem.mesh.cells=[64, 64, 64]", "matrix.format=csr", FEW],
    "box, csr with multigrid": ["problem.mesh.cells=[48, 48, 48]", "matrix.format=csr", "solver.preconditioner=multigrid"],
    "box, stencil": ["problem.mesh.cells=[100, 100, 100]", "matrix.format=matrix_free", "solver.tolerance=1e-3"],
    "box, matrix_free with k": ["problem.mesh.cells=[48, 48, 48]", "matrix.format=matrix_free", "problem.coefficient=1 + x",
                                FEW],
    "flat box, with its surface": ["problem.mesh.cells=[2, 330, 330]", "output.surface=true", "output.vtk.enabled=false",
                                   "solver.preconditioner=jacobi", "solver.tolerance=0.1"],
    "box with k from an image": ["problem.mesh.cells=[48, 48, 48]", "problem.coefficient={file: k.vti}", FEW],
    "graded box": ["problem.mesh.cells=[64, 64, 64]", "problem.mesh.growth=[1, 1, 1.05]", FEW],
    "graded box, vtu": ["problem.mesh.cells=[64, 64, 64]", "problem.mesh.growth=[1, 1, 1.05]", "output.vtk.format=vtu", FEW],
    "box with regions": ["problem.mesh.cells=[64, 64, 64]", "problem.mesh.regions=[{name: die, where: z < 0.3}]",
                         "problem.coefficient={die: 100, default: 1}", FEW],
    "box with void": ["problem.mesh.cells=[80, 80, 80]", "problem.mesh.regions=[{name: hole, where: sin(9*x) + sin(8*y) + sin(7*z) > 1, void: true}]",
                      "problem.boundary=[{ids: [0, 1], type: dirichlet, value: x}, {ids: all, type: neumann, value: 0}]",
                      "solver.preconditioner=multigrid", "output.vtk.enabled=false"],
    "lattices with regions": ["problem.mesh={generator: hyper_ball, refinements: 5, regions: [{name: die, where: x + 0.3*y < 0.21}]}",
                              "problem.coefficient={die: 100, default: 1}", "problem.source={die: '1', default: '0'}",
                              "output.vtk.enabled=false"],
    "box of order 2": ["problem.mesh.cells=[24, 24, 24]", "problem.element.order=2", "solver.tolerance=1e-6"],
    "box of order 3, csr": ["problem.mesh.cells=[14, 14, 14]", "problem.element.order=3", "matrix.format=csr",
                            FEW],
    "box of order 2, matrix_free": ["problem.mesh.cells=[30, 30, 30]", "problem.element.order=2", "matrix.format=matrix_free",
                                    FEW],
    "box of order 3 with k": ["problem.mesh.cells=[20, 20, 20]", "problem.element.order=3", "problem.coefficient=1 + x", FEW],
    "box of order 2 with regions": ["problem.mesh.cells=[32, 32, 32]", "problem.element.order=2", "matrix.format=matrix_free",
                                    "problem.mesh.regions=[{name: die, where: z < 0.3}]",
                                    "problem.coefficient={die: 100, default: 1}", FEW],
    "ball": [BALL.format(5), FEW],
    "ball, hdf": [BALL.format(5), "output.vtk.format=hdf", FEW],
    "ball, multigrid": [BALL.format(5), "solver.preconditioner=multigrid", "solver.tolerance=1e-6"],
    "ball, matrix_free": [BALL.format(5), "matrix.format=matrix_free", FEW],
    "ball of order 2, csr": [BALL.format(4), "problem.element.order=2", "matrix.format=csr", FEW],
    "ball of order 2, matrix_free": [BALL.format(4), "problem.element.order=2", "matrix.format=matrix_free",
                                     FEW],
    "file": [FILE.format(3), FEW],
    "file, csr with multigrid": [FILE.format(3), "solver.preconditioner=multigrid", "matrix.format=csr", "solver.tolerance=1e-6"],
    "file of order 3": [FILE.format(1), "problem.element.order=3", "matrix.format=csr", FEW],
    "file without refinement": ["problem.mesh={file: block.msh}", "problem.element.order=2", "matrix.format=csr",
                                FEW],
}


def number_of_bytes(number, unit):
    return float(number) * UNITS[unit]


def predicted(text):
    """The peak, what of it is the program's, and the stages."""
    found = re.search(r"host memory +about ([\d.]+) (\w+) at most, ([\d.]+) (\w+) of them for the program", text).groups()
    peak, program = number_of_bytes(*found[:2]), number_of_bytes(*found[2:])
    stages = re.search(r"host memory.*\n#     by stage +(.*)", text).group(1)
    return peak, program, {name: number_of_bytes(n, unit) for name, n, unit in re.findall(r"(\w+) ([\d.]+) (\w+)", stages)}


def write_block(path, n):
    """A cube of n^3 cells in Gmsh's format."""
    m = n + 1
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(m**3)]
    lines += [f"{1 + x + m * (y + m * z)} {x / n} {y / n} {z / n}" for z in range(m) for y in range(m) for x in range(m)]
    lines += ["$EndNodes", "$Elements", str(n**3)]
    for c in range(n**3):
        a = 1 + c % n + m * (c // n % n + m * (c // n**2))
        corners = [a, a + 1, a + 1 + m, a + m]
        lines.append(f"{c + 1} 5 2 1 1 " + " ".join(map(str, corners + [i + m * m for i in corners])))
    path.write_text("\n".join(lines + ["$EndElements", ""]))


def write_image(path, n):
    """n^3 ones on the unit cube."""
    values = "1 " * n**3
    path.write_text(f'<VTKFile type="ImageData" version="1.0"><ImageData WholeExtent="0 {n - 1} 0 {n - 1} 0 {n - 1}" Origin="0 0 0" '
                    f'Spacing="{1 / (n - 1)} {1 / (n - 1)} {1 / (n - 1)}"><Piece Extent="0 {n - 1} 0 {n - 1} 0 {n - 1}"><PointData>'
                    f'<DataArray type="Float64" Name="k" format="ascii">{values}</DataArray></PointData></Piece></ImageData></VTKFile>')


@pytest.mark.parametrize("sets", CASES.values(), ids=CASES)
def test_prediction_and_peak_agree(poisson, sets):
    shutil.copy(pathlib.Path(__file__).resolve().parents[2] / "meshes/ball.msh", poisson.directory)
    if any("block.msh" in s for s in sets):
        write_block(poisson.directory / "block.msh", 28)
    if any("k.vti" in s for s in sets):
        write_image(poisson.directory / "k.vti", 110)
    options = [word for s in sets for word in ("--set", s)]
    config = poisson.write(PROBLEM)
    peak, program, stages = predicted(poisson("check", config, *options).stdout)
    taken = 0
    # A picture is drawn beside a file that is written. The prediction is what both take at their largest; whether they are at their
    # largest at the same moment differs from run to run.
    for _ in range(8 if any("picture" in s for s in sets) else 1):
        poisson("run", config, "--output", "out", "--quiet", "--overwrite", *options, code=(0, 2))
        taken = max(taken, poisson.record()["memory"]["host_peak_bytes"])
        if taken >= 0.97 * peak:
            break
    told = f"predicted {peak / 1e6:.0f} MB, taken {taken / 1e6:.0f} MB, program {program / 1e6:.0f} MB, {stages}"
    print(told)
    assert peak == max(stages.values())
    assert 0.9 * taken <= peak <= 1.1 * taken, told
    # The arrays alone, where the program's libraries hide nothing. These have a little more room: how many pages of libraries and
    # of threads' stacks a run touches differs by some MB, which is several percent of the arrays here.
    assert taken > 1.3 * program, "the case is too small to tell anything"
    assert 0.87 * (taken - program) <= peak - program <= 1.13 * (taken - program), told


# The levels that ranks make from rows in csr are those that `auto` takes: the prediction knows that, too.
@pytest.mark.skipif(ranks.MPIRUN is None or not ranks.LIBRARY.exists(), reason="no mpirun, or built without MPI")
@pytest.mark.parametrize("n, order, refinements", [(2, 1, 5), (3, 2, 4)])
def test_prediction_and_peak_agree_for_rows_in_csr_on_ranks(poisson, n, order, refinements):
    config = poisson.write(PROBLEM)
    sets = [BALL.format(refinements), f"problem.element.order={order}", "matrix.format=csr", "solver.tolerance=1e-6",
            "output.vtk.enabled=false"]
    options = [word for s in sets for word in ("--set", s)]
    text = ranks.on_ranks(poisson, n, "check", config, *options).stdout
    assert re.search(r"preconditioner multigrid \(auto\), predicted", text)
    peak, program, stages = predicted(text)
    ranks.on_ranks(poisson, n, "run", config, "--output", "out", "--quiet", *options)
    record = poisson.record()
    assert record["solver"]["preconditioner"] == "multigrid"
    taken = record["of_ranks"]["host_peak_bytes"]["max"]
    told = f"predicted {peak / 1e6:.0f} MB, taken {taken / 1e6:.0f} MB, program {program / 1e6:.0f} MB, {stages}"
    assert taken > 1.3 * program, "the case is too small to tell anything"
    assert 0.9 * taken <= peak <= 1.1 * taken, told


@pytest.mark.parametrize("order, n_ranks", [(1, 1), (1, 2), (1, 4), (2, 1), (3, 1), (4, 1)])
def test_a_device_needs_little_of_the_host_for_a_box(poisson, order, n_ranks):
    n = 768 // order
    config = poisson.write(PROBLEM)
    sets = [f"problem.mesh.cells=[{n}, {n}, {n}]", f"problem.element.order={order}", "backend=cuda", "output.vtk.enabled=false",
            "problem.source=1"]
    text = poisson("check", config, "--ranks", str(n_ranks), *[word for s in sets for word in ("--set", s)]).stdout
    unknowns = (n * order + 1) ** 3
    assert predicted(text)[0] <= 0.6e9 + 0.1 * unknowns / n_ranks
    device = re.search(r"device memory +about ([\d.]+) (\w+)", text).groups()
    assert number_of_bytes(*device) <= 141e9  # of an H200


def test_too_large_a_run_is_refused_with_figures(poisson):
    config = poisson.write(PROBLEM)
    done = poisson("run", config, "--output", "out", "--set", "problem.mesh.cells=[1200, 1200, 1200]", code=3, timeout=20)
    assert "this run, whose largest stage on the host is 'solve' with about" in done.stderr
    assert "bytes" in done.stderr and "are available" in done.stderr


@pytest.mark.skipif(ranks.MPIRUN is None or not ranks.LIBRARY.exists(), reason="no mpirun, or built without MPI")
@pytest.mark.parametrize("mesh", ["{cells: [1200, 1200, 1200]}", "{generator: hyper_ball, refinements: 9}"])
def test_too_large_a_run_on_ranks_is_refused_with_figures(poisson, mesh):
    config = poisson.write(PROBLEM)
    done = ranks.on_ranks(poisson, 2, "run", config, "--output", "out", "--set", f"problem.mesh={mesh}", code=3)
    assert "this run, whose largest stage on the host is '" in done.stderr
    assert "on each of 2 ranks of this machine, needs" in done.stderr and "are available" in done.stderr
    assert not (poisson.directory / "out").exists()
