"""The program on several ranks, started by mpirun: the same answers as one rank, and one message when something is wrong."""

import os
import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import CUBE, EXECUTABLE, numbers_of_ranks_in_turn, read_vtk
from ranks import (BALL, MPIRUN, VARIED, compare_records, errors_told, on_ranks, pytestmark, ranks_command, ranks_of, read_pieces, residuals,  # noqa: F401
                   values, write_chain)
from test_records import DOCUMENTED, keys


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("matrix_format", ["csr", "half_cds", "auto"])
def test_ranks_solve_what_one_solves(poisson, n, matrix_format):
    config = poisson.write(VARIED)
    chosen = ("--set", f"matrix.format={matrix_format}")
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet", *chosen)
    done = on_ranks(poisson, n, "run", config, "--output", "ranks", "--backend", "cpu", *chosen)
    assert done.stdout.count("converged") == done.stdout.count("\n  status") + 1, "told once"
    one, other = poisson.record("one"), poisson.record("ranks")
    compare_records(one, other, n)
    first, second = residuals(poisson, "one"), residuals(poisson, "ranks")
    for a, b in zip(first[:20], second[:20]):
        assert b == pytest.approx(a, rel=1e-8)
    of_ranks = other["of_ranks"]
    assert of_ranks["rows"]["mean"] * n == pytest.approx(other["dofs"])
    assert of_ranks["rows"]["max"] < 1.7 * of_ranks["rows"]["mean"]
    assert of_ranks["timing"]["solve"]["max"] >= of_ranks["timing"]["solve"]["min"] > 0
    assert set(other["files"]) >= {"solution.pvti", "result.json", "residuals.csv", *(f"solution_{r}.vti" for r in range(n))}
    whole, pieces = read_vtk(poisson.directory / "one/solution.vti"), read_pieces(poisson.directory / "ranks/solution.pvti")
    assert pieces.GetDimensions() == whole.GetDimensions() and pieces.GetBounds() == pytest.approx(whole.GetBounds())
    assert [v[0] for v in values(pieces, "u")] == pytest.approx([v[0] for v in values(whole, "u")], rel=1e-8, abs=1e-10)
    for a, b in zip(values(whole, "flux", cells=True), values(pieces, "flux", cells=True)):
        assert b == pytest.approx(a, rel=1e-7, abs=1e-8)


def test_check_forecasts_a_rank(poisson):
    config = poisson.write(VARIED)
    sizes = ("--set", "problem.mesh.cells=[40, 38, 42]", "--set", "backend=cpu")
    told = poisson("check", config, "--ranks", 3, *sizes).stdout
    of_program = re.compile("about .* for the program|by stage .*")  # with what the process holds, which differs a little
    assert of_program.sub("", told) == of_program.sub("", on_ranks(poisson, 3, "check", config, *sizes).stdout)
    on_ranks(poisson, 3, "run", config, "--output", "out", "--quiet", *sizes)
    of_ranks = poisson.record("out")["of_ranks"]
    unknowns = int(re.search(r"unknowns +([\d ]+), and", told)[1].replace(" ", ""))
    assert unknowns == of_ranks["rows"]["max"]
    memory = float(re.search(r"host memory +about ([\d.]+) MiB", told)[1]) * 2**20
    assert 0.7 * memory < of_ranks["host_peak_bytes"]["max"] < 1.2 * memory
    huge = poisson("check", config, "--ranks", 64, "--set", "problem.mesh.cells=[2048, 2048, 2048]").stdout
    assert "4 x 4 x 4" in huge and "unknowns       8 602 523 649" in huge
    many = poisson("check", config, "--ranks", 4096, "--set", "problem.mesh.cells=[8192, 8192, 8192]").stdout
    assert "16 x 16 x 16" in many and "135 005 697, and 791 047 that come from 7 other ranks" in many
    poisson("check", config, "--ranks", 0, code=1)


@pytest.mark.parametrize("settings", [["problem.mesh.refinements=4"], ["problem.element.order=2"],
                                      ["problem.mesh.refinements=1", "problem.element.order=3"]])
def test_check_forecasts_parts_of_other_meshes(poisson, settings):
    config = poisson.write(BALL)
    chosen = ["--set", "backend=cpu"] + [word for setting in settings for word in ("--set", setting)]
    told = poisson("check", config, "--ranks", 3, *chosen).stdout
    on_ranks(poisson, 3, "run", config, "--output", "out", "--quiet", *chosen)
    of_ranks = poisson.record("out")["of_ranks"]
    unknowns = int(re.search(r"unknowns +about ([\d ]+), and", told)[1].replace(" ", ""))
    assert 0.85 * unknowns < of_ranks["rows"]["max"] < 1.15 * unknowns
    memory = float(re.search(r"host memory +about ([\d.]+) MiB", told)[1]) * 2**20
    assert 0.7 * memory < of_ranks["host_peak_bytes"]["max"] < 1.2 * memory
    assert ("no rank makes the whole mesh" in told) == ("problem.mesh.refinements=1" not in settings)


def test_ranks_without_devices_are_on_the_cpu(poisson):
    config = poisson.write(CUBE)
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    done = on_ranks(poisson, 2, "run", config, "--output", "no", "--backend", "cuda", "--quiet", code=3, env=environment)
    assert len(errors_told(done)) == 1 and "backend cuda: " in done.stderr and not (poisson.directory / "no").exists()
    on_ranks(poisson, 2, "run", config, "--output", "out", "--quiet", env=environment)
    record = poisson.record("out")
    assert record["backend"] == "cpu" and record["of_ranks"]["devices"] == [record["device"]] * 2


def test_ranks_on_devices_have_the_solution_of_the_cpu(poisson):
    """Where there is one device, both ranks share it; where there are two, each has its own."""
    config = poisson.write(VARIED)
    done = on_ranks(poisson, 2, "run", config, "--output", "out")
    record = poisson.record("out")
    if record["backend"] != "cuda":
        pytest.skip("no CUDA device")
    assert ("share 1 device" in done.stdout + done.stderr) == ("host memory" in done.stdout)
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet")
    one = poisson.record("one")
    assert record["solver"]["residual_true"] < 1e-11 and abs(record["solver"]["iterations"] - one["solver"]["iterations"]) <= 2
    assert record["quantities"] == {key: pytest.approx(value, rel=1e-9) for key, value in one["quantities"].items()}
    assert record["memory"]["device_peak_bytes"] > 0


def test_the_figures_of_ranks_are_documented(poisson):
    on_ranks(poisson, 2, "run", poisson.write(CUBE), "--output", "out", "--quiet")
    found = {key for key in keys(poisson.record("out"), named={"of_ranks.timing"}) if key.startswith("of_ranks")}
    assert found == {key for key in DOCUMENTED["Run"] if key.startswith("of_ranks")}


def test_one_rank_under_mpirun_is_a_plain_run(poisson):
    config = poisson.write(VARIED)
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet")
    on_ranks(poisson, 1, "run", config, "--output", "ranks", "--backend", "cpu", "--quiet")
    assert residuals(poisson, "one") == residuals(poisson, "ranks")
    assert (poisson.directory / "ranks/solution.vti").exists() and poisson.record("ranks")["ranks"] == 1


@pytest.mark.parametrize("settings", [["problem.element.order=2"], ["problem.element.order=3", "solver.method=bicgstab"],
                                      ["solver.precision=refined", "solver.tolerance=1e-20"], ["solver.precision=double_double"]])
def test_orders_methods_and_precisions(poisson, settings):
    config = poisson.write(VARIED)
    chosen = [word for setting in settings for word in ("--set", setting)] + ["--set", "problem.mesh.cells=[4, 3, 5]"]
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet", *chosen)
    on_ranks(poisson, 3, "run", config, "--output", "ranks", "--quiet", *chosen)
    one, other = poisson.record("one"), poisson.record("ranks")
    assert other["status"] == one["status"] == "converged" and other["dofs"] == one["dofs"] and other["nnz"] == one["nnz"]
    assert other["solver"]["residual_true"] <= 3 * other["solver"]["tolerance"]
    assert abs(other["solver"]["iterations"] - one["solver"]["iterations"]) <= 0.2 * one["solver"]["iterations"]
    for name, error in one["errors"].items():
        assert other["errors"][name] == pytest.approx(error, rel=1e-7), name
    if "problem.element.order" in settings[0]:
        whole, pieces = read_vtk(poisson.directory / "one/solution.vtr"), read_pieces(poisson.directory / "ranks/solution.pvtr")
        assert pieces.GetBounds() == pytest.approx(whole.GetBounds())
        assert [v[0] for v in values(pieces, "u")] == pytest.approx([v[0] for v in values(whole, "u")], rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("settings", [[], ["problem.element.order=2", "problem.mesh.refinements=1"], ["matrix.format=sell_c_sigma"],
                                      ["problem.mesh.generator=hyper_shell", "problem.mesh.arguments='0,0,0 : 0.5 : 1 : 6'"]])
def test_other_meshes_in_parts(poisson, n, settings):
    config = poisson.write(BALL)
    chosen = [word for setting in settings for word in ("--set", setting)]
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet", *chosen)
    on_ranks(poisson, n, "run", config, "--output", "ranks", "--quiet", *chosen)
    compare_records(poisson.record("one"), poisson.record("ranks"), n)
    whole, pieces = read_vtk(poisson.directory / "one/solution.vtu"), read_pieces(poisson.directory / "ranks/solution.pvtu")
    assert pieces.GetNumberOfCells() == whole.GetNumberOfCells()
    assert pieces.GetBounds() == pytest.approx(whole.GetBounds())
    found = {tuple(round(x, 9) + 0.0 for x in whole.GetPoint(i)): u[0] for i, u in enumerate(values(whole, "u"))}
    for i, u in enumerate(values(pieces, "u")):
        assert u[0] == pytest.approx(found[tuple(round(x, 9) + 0.0 for x in pieces.GetPoint(i))], rel=1e-7, abs=1e-9)


def test_a_mesh_file_in_parts(poisson):
    from conftest import ROOT

    text = BALL.replace("generator: hyper_ball, refinements: 2", f"file: {ROOT}/meshes/two_materials.msh").replace("z > 0.3", "z > 0.99")
    config = poisson.write(text)
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet")
    on_ranks(poisson, 3, "run", config, "--output", "ranks", "--quiet")
    compare_records(poisson.record("one"), poisson.record("ranks"), 3)


def test_unstructured_pieces(poisson):
    config = poisson.write(VARIED)
    on_ranks(poisson, 3, "run", config, "--output", "ranks", "--quiet", "--set", "output.vtk.format=vtu", "--set", "problem.element.order=2")
    pieces = read_pieces(poisson.directory / "ranks/solution.pvtu")
    assert pieces.GetNumberOfCells() == 15 * 13 * 16
    for i, (u, exact) in enumerate(zip(values(pieces, "u"), values(pieces, "exact"))):
        x, y, z = pieces.GetPoint(i)
        assert exact[0] == pytest.approx(x * y + z)


def test_two_runs_have_the_same_bits(poisson):
    config = poisson.write(VARIED)
    for directory in ("a", "b"):
        on_ranks(poisson, 3, "run", config, "--output", directory, "--quiet")
    assert residuals(poisson, "a") == residuals(poisson, "b")
    for r in range(3):
        name = f"solution_{r}.vti"
        assert (poisson.directory / "a" / name).read_bytes() == (poisson.directory / "b" / name).read_bytes()


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("setting", ["matrix.format=half_cds", "matrix.format=csr", "solver.precision=refined", "solver.method=bicgstab",
                                     "solver.multigrid={precision: double, cycle: w, coarse_size: 100}",
                                     "problem.coefficient='1 + 1e4*(x > 0.3 && y < 0.6)'", "problem.mesh.cells=[5, 4, 90]"])
def test_multigrid_is_that_of_one_rank(poisson, n, setting):
    config = poisson.write(VARIED.replace("jacobi", "multigrid"))
    chosen = ("--set", setting, "--backend", "cpu", "--quiet")
    poisson("run", config, "--output", "one", *chosen)
    on_ranks(poisson, n, "run", config, "--output", "ranks", *chosen)
    one, other = poisson.record("one"), poisson.record("ranks")
    compare_records(one, other, n)
    assert other["solver"]["preconditioner"] == "multigrid"
    levels, expected = other["solver"]["multigrid"]["levels"], one["solver"]["multigrid"]["levels"]
    assert [level["rows"] for level in levels] == [level["rows"] for level in expected]


# One stencil, with every condition.
STENCIL = VARIED.replace('coefficient: "1 + x*x + 0.5*y"', "coefficient: 2")


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("settings", [
    [], ["problem.mesh.cells=[16, 24, 16]", "problem.boundary=[{ids: [0, 1, 3], type: dirichlet, value: 'x'}, "
         "{ids: [2, 4, 5], type: neumann, value: 'y'}]"],
    ["problem.coefficient=[1, 2, 30]", "solver.precision=refined", "solver.tolerance=1e-18"],
    ["problem.boundary=[{ids: all, type: robin, alpha: '1', value: 'z'}]"],
    ["problem.boundary=[{ids: all, type: neumann, value: '0'}]", "problem.source='x*y*z - 0.15625'"],
    ["problem.point_sources=[{at: [0.25, 0.5, 1], value: 2}]", "problem.source_total=3", "solver.preconditioner=jacobi"]])
def test_without_entries_as_one_rank(poisson, n, settings):
    config = poisson.write(STENCIL.replace("jacobi", "multigrid"))
    chosen = [word for setting in ["matrix.format=matrix_free", *settings] for word in ("--set", setting)]
    chosen += ["--backend", "cpu", "--quiet"]
    poisson("run", config, "--output", "one", *chosen)
    on_ranks(poisson, n, "run", config, "--output", "ranks", *chosen)
    one, other = poisson.record("one"), poisson.record("ranks")
    compare_records(one, other, n)
    assert other["matrix"]["format"] == one["matrix"]["format"] == "matrix_free"
    assert other["solver"]["iterations"] == one["solver"]["iterations"]
    levels = [record["solver"].get("multigrid", {}).get("levels", []) for record in (other, one)]
    assert [level["rows"] for level in levels[0]] == [level["rows"] for level in levels[1]]
    whole, pieces = read_vtk(poisson.directory / "one/solution.vti"), read_pieces(poisson.directory / "ranks/solution.pvti")
    assert [v[0] for v in values(pieces, "u")] == pytest.approx([v[0] for v in values(whole, "u")], rel=1e-8, abs=1e-10)


def test_auto_leaves_entries_out_as_on_one_rank(poisson):
    config = poisson.write(STENCIL.replace("jacobi", "multigrid"))
    large = ("--set", "problem.mesh.cells=[96, 96, 96]", "--set", "output.vtk.enabled=false", "--backend", "cpu", "--quiet")
    poisson("run", config, "--output", "one", *large)
    on_ranks(poisson, 2, "run", config, "--output", "ranks", *large)
    one, other = poisson.record("one"), poisson.record("ranks")
    assert other["matrix"]["format"] == one["matrix"]["format"] == "matrix_free"
    compare_records(one, other, 2)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("settings", [["problem.coefficient=1 + x"], ["problem.coefficient=1 + x", "solver.preconditioner=multigrid"],
                                      ["problem.mesh.growth=[1, 1.1, 1]"], ["problem.mesh.cells=[4, 4, 4]"],
                                      ["problem.mesh.cells=[2, 1, 1]", "solver.preconditioner=multigrid"],
                                      ["problem.mesh={generator: hyper_ball}"],
                                      ["problem.mesh={generator: hyper_ball, refinements: 1}", "problem.element.order=2",
                                       "solver.preconditioner=multigrid"]])
def test_ranks_take_every_cell_by_itself(poisson, n, settings):
    """Boxes whose rows differ, thin blocks, meshes that were hardly refined: without entries, as on one rank."""
    config = poisson.write(CUBE)
    chosen = [word for setting in ["matrix.format=matrix_free", "output.vtk.enabled=false", "output.picture=false", *settings]
              for word in ("--set", setting)]
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet", *chosen)
    on_ranks(poisson, n, "run", config, "--output", "ranks", "--backend", "cpu", "--quiet", *chosen)
    one, other = poisson.record("one"), poisson.record("ranks")
    assert other["matrix"]["format"] == one["matrix"]["format"] == "matrix_free"
    compare_records(one, other, n)


def test_check_forecasts_a_rank_without_entries(poisson):
    config = poisson.write(STENCIL.replace("jacobi", "multigrid"))
    sizes = ("--set", "problem.mesh.cells=[96, 96, 96]", "--set", "backend=cpu", "--set", "output.vtk.enabled=false")
    told = poisson("check", config, "--ranks", 2, *sizes).stdout
    assert re.search(r"format +matrix_free \(auto\)", told)
    on_ranks(poisson, 2, "run", config, "--output", "out", "--quiet", *sizes)
    memory = float(re.search(r"host memory +about ([\d.]+) MiB", told)[1]) * 2**20
    assert 0.7 * memory < poisson.record("out")["of_ranks"]["host_peak_bytes"]["max"] < 1.2 * memory
    huge = ("--set", "problem.mesh.cells=[2016, 2016, 1008]", "--set", "problem.boundary=[{ids: all, type: dirichlet, value: '0'}]")
    predicted = []
    for precision in ("double", "auto"):
        told = poisson("check", config, "--ranks", 4, *huge, "--set", "backend=cuda", "--set", f"solver.precision={precision}").stdout
        assert "2 x 2 x 1" in told and "unknowns       4 104 903 601" in told
        predicted.append(float(re.search(r"device memory +about ([\d.]+) GiB", told)[1]))
    assert predicted[0] < 78
    # Double does not come to the tolerance there: the vectors of refined precision, 40 bytes a row.
    assert predicted[1] - predicted[0] == pytest.approx(40 * 4104903601 / 4 / 2**30, rel=0.05)


def test_auto_takes_multigrid_where_it_has_levels(poisson):
    config = poisson.write(CUBE)
    large = ("--set", "problem.mesh.cells=[48, 48, 48]", "--quiet", "--backend", "cpu")
    on_ranks(poisson, 2, "run", config, "--output", "ranks", *large)
    assert poisson.record("ranks")["solver"]["preconditioner"] == "multigrid"
    on_ranks(poisson, 2, "run", config, "--output", "second", *large, "--set", "problem.element.order=2", "--set",
             "problem.mesh.cells=[24, 24, 24]")
    assert poisson.record("second")["solver"]["preconditioner"] == "multigrid"


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("mesh, order", [("box", 2), ("box", 3), ("ball", 1), ("ball", 2), ("ball", 3)])
def test_multigrid_has_the_levels_of_one_rank(poisson, n, mesh, order):
    config = poisson.write((VARIED if mesh == "box" else BALL).replace("jacobi", "multigrid"))
    chosen = ["--set", f"problem.element.order={order}", "--backend", "cpu", "--quiet"]
    if mesh == "ball" and order < 3:
        chosen += ["--set", "problem.mesh.refinements=3"]
    poisson("run", config, "--output", "one", *chosen)
    on_ranks(poisson, n, "run", config, "--output", "ranks", *chosen)
    one, other = poisson.record("one"), poisson.record("ranks")
    assert abs(other["solver"]["iterations"] - one["solver"]["iterations"]) <= (0 if mesh == "box" else 1)
    assert other["solver"]["residual_true"] <= 3e-12
    assert other["errors"]["l2"] == pytest.approx(one["errors"]["l2"], rel=1e-7)
    levels, expected = (record["solver"]["multigrid"]["levels"] for record in (other, one))
    assert [level["rows"] for level in levels][:2] == [level["rows"] for level in expected][:2]


def test_more_ranks_than_cells(poisson):
    config = poisson.write(CUBE)
    done = on_ranks(poisson, 5, "run", config, "--output", "ranks", "--set", "problem.mesh.cells=[1, 1, 3]")
    assert "2 of 5 ranks have no cells" in done.stderr and done.stderr.count("warning") == 1
    record = poisson.record("ranks")
    assert record["status"] == "converged" and record["dofs"] == 16 and record["of_ranks"]["rows"]["min"] == 0
    assert read_pieces(poisson.directory / "ranks/solution.pvti").GetDimensions() == (2, 2, 4)


@pytest.mark.parametrize("setting, told", [
    ("problem.mesh={generator: nothing}", ["problem.mesh.generator", "nothing"]),
    ("problem.boundary=[{ids: all, type: neumann, value: '1'}]", ["problem.boundary", "the problem has no solution"]),
    ("problem.source='sqrt(x-2)'", ["problem.source", "must be finite"]),
    ("problem.sourc=1", ["did you mean"]),
])
def test_what_all_ranks_find_wrong_is_told_once(poisson, setting, told):
    config = poisson.write(CUBE)
    done = on_ranks(poisson, 3, "run", config, "--output", "out", "--set", setting, code=1)
    errors = errors_told(done)
    assert len(errors) == 1, done.stderr
    for part in told:
        assert part in errors[0]
    assert not (poisson.directory / "out/result.json").exists()


def test_what_one_rank_finds_wrong_is_told_with_its_rank(poisson):
    """The source is infinite in the upper block only."""
    config = poisson.write(CUBE)
    done = on_ranks(poisson, 2, "run", config, "--output", "out", "--set", "problem.source='1/(z > 0.9 ? 0 : 1)'", code=1)
    errors = errors_told(done)
    assert len(errors) == 1 and "rank 1: " in errors[0] and "problem.source" in errors[0], done.stderr


def test_a_missing_file_and_an_earlier_run_are_told_once(poisson):
    done = on_ranks(poisson, 3, "run", "nothing.yaml", code=1)
    assert len(errors_told(done)) == 1 and "nothing.yaml" in done.stderr
    config = poisson.write(CUBE)
    on_ranks(poisson, 2, "run", config, "--output", "out", "--quiet")
    done = on_ranks(poisson, 2, "run", config, "--output", "out", "--quiet", code=1)
    assert len(errors_told(done)) == 1 and "--overwrite" in done.stderr
    on_ranks(poisson, 3, "run", config, "--output", "out", "--quiet", "--overwrite")
    assert poisson.record("out")["ranks"] == 3
    poisson("run", config, "--output", "out", "--quiet", "--overwrite")
    assert not list((poisson.directory / "out").glob("solution_*.vti")), "the pieces of the earlier run are gone"


def test_ranks_with_different_configurations(poisson):
    """Each rank reads the file that its rank names, as on machines with different disks."""
    for r in range(2):
        poisson.write(CUBE.replace("[8, 8, 8]", f"[8, 8, {8 + r}]"), f"case_{r}.yaml")
    script = poisson.directory / "start"
    script.write_text(f'#!/bin/sh\nexec {EXECUTABLE} run case_$OMPI_COMM_WORLD_RANK.yaml --output out\n')
    script.chmod(0o755)
    done = subprocess.run([MPIRUN, "-n", "2", "--oversubscribe", "--allow-run-as-root", str(script)], cwd=poisson.directory, text=True,
                          capture_output=True, timeout=100)
    assert done.returncode == 1 and len(errors_told(done)) == 1 and "different configurations" in done.stderr, done.stderr


def test_a_tolerance_that_is_not_reached(poisson):
    config = poisson.write(VARIED)
    done = on_ranks(poisson, 2, "run", config, "--output", "out", "--set", "solver.max_iterations=3", code=2)
    assert not errors_told(done)
    record = poisson.record("out")
    assert record["status"] == "max_iterations" and record["exit_code"] == 2 and "solution.pvti" in record["files"]


def start_long_run(poisson):
    config = poisson.write(CUBE + "solver: {precision: double_double, preconditioner: none, tolerance: 1e-28}\n")
    process = subprocess.Popen(ranks_command(2, "run", config, "--output", "out", "--set", "problem.mesh.cells=[72, 72, 72]",
                                             "--set", "matrix.format=csr"),
                               cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith("  convert"):
            break
    return process


@pytest.mark.parametrize("megabytes", [400, 700])
def test_ranks_with_little_memory_end(poisson, megabytes):
    """OpenBLAS, which deal.II brings, waits for memory for ever; MPI has taken some of it before."""
    config = poisson.write(BALL)
    command = ranks_command(2, "run", config, "--output", "out", "--threads", 1)
    at = command.index(EXECUTABLE)
    command[at:at] = ["sh", "-c", f'ulimit -v {megabytes * 1024}; exec "$@"', "sh"]
    done = subprocess.run(command, cwd=poisson.directory, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 3, 127), done.stderr


def test_a_killed_rank_ends_the_others(poisson):
    process = start_long_run(poisson)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    begin = time.monotonic()
    process.communicate(timeout=60)
    assert time.monotonic() - begin < 10 and process.returncode != 0
    left = {path.name for path in (poisson.directory / "out").iterdir()}
    assert not {"result.json", "solution.pvti"} & left and not [name for name in left if name.endswith(".vti")], left


def test_a_signal_to_one_rank_stops_all_with_their_results(poisson):
    process = start_long_run(poisson)
    time.sleep(0.5)
    os.kill(ranks_of(process)[0], signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    record = poisson.record("out")
    assert record["status"] == "interrupted" and record["solver"]["iterations"] > 0
    assert read_pieces(poisson.directory / "out/solution.pvti").GetNumberOfCells() == 72**3


def test_all_ranks_end_by_the_signal_that_one_has_got(poisson):
    process = start_long_run(poisson)
    os.kill(ranks_of(process)[1], signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143 and poisson.record("out")["exit_code"] == 143, errors


@pytest.mark.parametrize("names", [("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")])
def test_variables_of_a_launcher_that_is_not_there(poisson, names):
    """Every process may be the only one, and says what is wrong."""
    config = poisson.write(CUBE)
    for rank in "01":
        env = os.environ | {names[0]: rank, names[1]: "2"}
        assert "left over" in poisson("run", config, code=3, env=env).stderr
    assert "2 ranks" in poisson("schema", code=1, env=env).stderr
    assert "unknowns" in poisson("check", config, env=env).stdout


def test_other_commands_say_that_they_take_no_ranks(poisson):
    done = on_ranks(poisson, 2, "schema", code=1)
    assert len(errors_told(done)) == 1 and "2 ranks" in done.stderr
    assert on_ranks(poisson, 2, "--version").stdout.startswith("poisson ")


def test_a_program_without_the_library_says_so(poisson):
    alone = shutil.copy(EXECUTABLE, poisson.directory / "alone")
    config = poisson.write(CUBE)
    command = [alone if word == EXECUTABLE else word for word in ranks_command(2, "run", config)]
    done = subprocess.run(command, cwd=poisson.directory, text=True, capture_output=True, timeout=100)
    assert done.returncode == 3 and len(errors_told(done)) == 1 and "libpoisson_mpi.so" in done.stderr, done.stderr


def test_the_file_of_the_pieces_is_well_formed(poisson):
    config = poisson.write(CUBE)
    on_ranks(poisson, 2, "run", config, "--output", "out", "--quiet")
    grid = ElementTree.parse(poisson.directory / "out/solution.pvti").getroot()[0]
    assert grid.attrib["WholeExtent"] == "0 8 0 8 0 8"
    assert [piece.attrib["Extent"] for piece in grid.iter("Piece")] == ["0 8 0 8 0 4", "0 8 0 8 4 8"]


def read_vector(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
    return [float(line) for line in lines[1:]]


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("setting", ["matrix.format=csr", "matrix.format=auto", "matrix.format=sell_c_sigma", "solver.precision=refined",
                                     "solver.method=bicgstab"])
def test_a_system_of_files(poisson, n, setting):
    matrix = write_chain(poisson, 401)
    chosen = ("--matrix", matrix, "--set", setting, "--set", "solver.preconditioner=jacobi", "--backend", "cpu", "--quiet")
    poisson("solve", *chosen, "--output", "one")
    on_ranks(poisson, n, "solve", *chosen, "--output", "ranks")
    one, other = poisson.record("one"), poisson.record("ranks")
    assert other["ranks"] == n and other["dofs"] == 401 and other["nnz"] == one["nnz"] and other["status"] == "converged"
    assert abs(other["solver"]["iterations"] - one["solver"]["iterations"]) <= (1 if "bicgstab" not in setting else 20)
    assert other["solver"]["residual_true"] <= 1.1e-12
    first, second = (read_vector(poisson.directory / name / "solution.mtx") for name in ("one", "ranks"))
    assert len(first) == 401 and second == pytest.approx(first, rel=1e-8)
    assert (poisson.directory / "ranks/solution_low.mtx").exists() == ("refined" in setting)


def test_more_ranks_than_rows_of_a_file(poisson):
    matrix = write_chain(poisson, 3)
    on_ranks(poisson, 5, "solve", "--matrix", matrix, "--output", "ranks", "--backend", "cpu", "--quiet")
    poisson("solve", "--matrix", matrix, "--output", "one", "--backend", "cpu", "--quiet")
    first, second = (read_vector(poisson.directory / name / "solution.mtx") for name in ("one", "ranks"))
    assert second == pytest.approx(first, rel=1e-10)


@pytest.mark.parametrize("words, told", [
    (["--matrix", "none.mtx"], "none.mtx: there is no such file"),
    (["--matrix", "chain.mtx", "--rhs", "chain.mtx"], "chain.mtx"),
    (["--matrix", "chain.mtx", "--set", "matrix.format=matrix_free"], "matrix_free"),
])
def test_a_wrong_system_is_told_once(poisson, words, told):
    write_chain(poisson, 60)
    done = on_ranks(poisson, 3, "solve", *words, "--output", "out", "--backend", "cpu", code=1)
    errors = errors_told(done)
    assert len(errors) == 1 and told in errors[0], done.stderr


@pytest.mark.parametrize("words", [["solve", "--output", "out"], ["bench", "spmv", "--repeat", "1"], ["bench", "solve", "--repeat", "1"]])
def test_only_the_first_rank_reads_a_matrix(poisson, words):
    """The others start in a folder where there is no such file."""
    matrix = write_chain(poisson, 60)
    (poisson.directory / "elsewhere").mkdir()
    command = ranks_command(1, *words, "--matrix", matrix, "--backend", "cpu")
    program = command[command.index(EXECUTABLE):]
    done = subprocess.run([*command, ":", "-n", "2", "--wdir", poisson.directory / "elsewhere", *program], cwd=poisson.directory, text=True,
                          capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on 3 ranks" in done.stdout
    assert (poisson.directory / "out/solution.mtx").exists() == ("out" in words) and not list((poisson.directory / "elsewhere").iterdir())


# --- warnings


@pytest.mark.parametrize("mesh, order, source, word", [
    ("cells: [16, 16, 16]", 1, "1e6*exp(-((x-0.41)^2 + (y-0.52)^2 + (z-0.61)^2)/0.005^2)", "near (x, y, z)"),
    ("cells: [16, 16, 16]", 1, "sin(200*x)", "varies so much"),
    ("cells: [16, 16, 16]", 1, "sin(20*x)*cos(15*y)", None),
    ("generator: hyper_ball, refinements: 2", 2, "exp(-((x-0.31)^2 + (y-0.2)^2 + (z+0.1)^2)/0.01^2)", "near (x, y, z)"),
    ("generator: hyper_ball, refinements: 3", 1, "exp(-((x-0.31)^2 + (y-0.2)^2 + (z+0.1)^2)/0.02^2)", "near (x, y, z)"),
    ("cells: [12, 10, 8]", 2, "1e6*exp(-((x-0.41)^2 + (y-0.52)^2 + (z-0.61)^2)/0.01^2)", "near (x, y, z)"),
    ("generator: hyper_ball, refinements: 1", 2, "exp(x)*(1-x^2-y^2-z^2)", None)])
def test_a_source_for_which_the_mesh_is_too_coarse(poisson, mesh, order, source, word):
    config = poisson.write(f"""
problem:
  mesh: {{{mesh}}}
  element: {{order: {order}}}
  source: "{source}"
  boundary: [{{ids: all, type: dirichlet, value: "0"}}]
output: {{picture: false, vtk: {{enabled: false}}}}
""")
    one = poisson("run", config, "--output", "one", "--quiet", "--backend", "cpu").stderr
    other = on_ranks(poisson, 3, "run", config, "--output", "ranks", "--quiet", "--backend", "cpu").stderr
    for told in (one, other):
        assert told.count("too coarse for this source") == (0 if word is None else 1) and (word or "") in told, told
    assert len(poisson.record("ranks")["warnings"]) == len(poisson.record("one")["warnings"]) == (0 if word is None else 1)
    if word == "near (x, y, z)":
        found = [float(told.split("about ")[1].split()[0]) for told in (one, other)]
        assert found[1] == pytest.approx(found[0], rel=0.02)


def test_every_setting_and_every_number_of_ranks_has_a_case():
    class Item:
        def __init__(self, nodeid, **parameters):
            self.nodeid = nodeid
            self.callspec = type("Of", (), {"params": parameters})

    of_both = [Item(f"test_ranks.py::both[{n}-{s}]", n=n, s=s) for n in (2, 3, 5) for s in "abcd"]
    others = [Item(f"test_ranks.py::alone[{n}]", n=n) for n in (2, 3)] + [Item(f"test_run.py::both[{n}-{s}]", n=n, s=s) for n in (1, 2) for s in "ab"]
    chosen = numbers_of_ranks_in_turn(of_both + others)
    assert [item.nodeid[len("test_ranks.py::both["):-1] for item in chosen[:4]] == ["2-a", "2-d", "3-b", "5-c"] and chosen[4:] == others[1:]
    many = [Item(f"test_ranks.py::many[{s}]", n=2, s=s) for s in "abcdefgh"]
    assert numbers_of_ranks_in_turn(many) == many[::2]
