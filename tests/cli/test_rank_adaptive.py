"""Adaptive refinement on several ranks: the meshes, estimates and files of one rank."""

import re
import signal

import pytest
from test_adaptive import PLATE as plate_of_one_rank
from ranks import both, errors_told, on_ranks, pytestmark, ranks_command, ranks_of  # noqa: F401

# A source beside the heater, and no picture.
PLATE = plate_of_one_rank.replace("  coefficient:", '  source: "exp(-40*((x - 0.3)^2 + y^2))"\n  coefficient:').replace("output: {", "output: {picture: false, ").replace("2%", "3%")
ADAPTIVE = "problem.mesh.adaptive."
FREE = ("problem.boundary=[{ids: all, type: neumann, value: 0}]", "problem.source=x - 0.5", ADAPTIVE + "tolerance=10%")
BALL = ("problem.mesh={generator: hyper_ball, refinements: 1, adaptive: {tolerance: 15%}}", "problem.source=exp(-30*(x^2 + y^2))",
        "problem.boundary=[{ids: all, type: dirichlet, value: 0}]", "output.probes=[]")


def compare(one, other, n):
    assert other.get("ranks", 1) == n and one["status"] == other["status"] == "converged"
    assert one["mesh"] == other["mesh"] and one["dofs"] == other["dofs"] and one["files"] == other["files"]
    pairs = list(zip(one["adaptive"]["cycles"], other["adaptive"]["cycles"], strict=True))
    assert len(pairs) > 1
    for a, b in pairs:
        assert (a["dofs"], a["cells"], a["levels"]) == (b["dofs"], b["cells"], b["levels"])
        assert b["value"] == pytest.approx(a["value"], rel=1e-9) and b["estimate"] == pytest.approx(a["estimate"], rel=1e-7)
    for name, value in one["quantities"].items():
        if isinstance(value, float) and name != "balance":
            assert other["quantities"][name] == pytest.approx(value, rel=1e-8, abs=1e-9), name
    assert n == 1 or other["of_ranks"]["rows"]["max"] < one["dofs"]


@pytest.mark.parametrize("n, settings", [
    (1, ()), (2, ()), (3, ()), (3, (ADAPTIVE + "target=flux.heater", ADAPTIVE + "tolerance=1%")), (2, (ADAPTIVE + "target=probe.tip",)),
    (2, (ADAPTIVE + "estimator=equilibrated", ADAPTIVE + "tolerance=10%")), (3, ("problem.element.order=2", "matrix.format=cod_sell")),
    (2, ("solver.preconditioner=multigrid", "problem.coefficient='x > 0.5 ? 1e4 : 1'")), (3, FREE), (2, BALL),
    (2, (ADAPTIVE + "orders=auto",)), (2, ("solver.precision=double_double", "solver.tolerance=1e-20", ADAPTIVE + "tolerance=10%")),
    (3, ("analysis.svd=[{of: operator}]", ADAPTIVE + "tolerance=10%")), (2, ("solver.method=minres", "solver.preconditioner=jacobi"))])
def test_the_meshes_are_those_of_one_rank(poisson, n, settings):
    one, other = both(poisson, PLATE, n, *settings)
    compare(one, other, n)
    for a, b in zip(one.get("analysis", []), other.get("analysis", []), strict=True):
        assert b["condition"] == pytest.approx(a["condition"], rel=1e-6)


def test_the_matrix_is_that_of_one_rank(poisson):
    config = poisson.write(PLATE)
    words = ("run", config, "--quiet", "--set", ADAPTIVE + "tolerance=10%", "--output")
    poisson(*words, "one", "--matrix-out", "one.mtx")
    on_ranks(poisson, 2, *words, "two", "--matrix-out", "two.mtx")
    for name in ("one.mtx", "one_rhs.mtx"):
        assert (poisson.directory / name).read_bytes() == (poisson.directory / name.replace("one", "two")).read_bytes()


def test_check_says_who_has_the_mesh(poisson):
    told = poisson("check", poisson.write(PLATE), "--ranks", 2).stdout
    assert re.search("parts +2 of the rows, for solves; the first rank has the mesh", told), told


@pytest.mark.parametrize("setting, word", [(ADAPTIVE + "target=flux.nose", "no boundary 'nose'"), ("problem.source=sqrt(x - 0.5)", "is -nan")])
def test_what_is_wrong_is_told_once(poisson, setting, word):
    done = on_ranks(poisson, 3, "run", poisson.write(PLATE), "--output", "out", "--set", setting, code=1)
    told = errors_told(done)
    assert len(told) == 1 and word in told[0], done.stderr


@pytest.mark.parametrize("rank, seconds", [(0, 0.05), (1, 0.3)])
def test_an_interrupt_leaves_a_whole_result(poisson, rank, seconds):
    """It is sent to a rank: mpirun would kill them all a second later."""
    code, errors = poisson.interrupted(ranks_command(2, "run", poisson.write(PLATE), "--output", "out", "--set", ADAPTIVE + "tolerance=0.01%",
                                                     "--set", ADAPTIVE + "max_unknowns=5e6"), "cycle 6", seconds, signal.SIGTERM,
                                       lambda process: ranks_of(process)[rank])
    record = poisson.record("out")
    assert code == 143 and record["status"] == "interrupted" and "complete" in record["reason"] and "solution.vtu" in record["files"], errors
