"""Multigrid and the defaults `auto`, as users meet them."""
import pytest
import yaml

ZERO = {"ids": "all", "type": "dirichlet", "value": "0"}
HELD = [{"ids": [0], "type": "dirichlet", "value": "0"}, {"ids": [1, 2, 3, 4, 5], "type": "neumann", "value": "0"}]


@pytest.fixture
def solve(poisson):
    """Runs a problem and returns its record."""
    def run(problem, *more, **options):
        config = poisson.directory / "config.yaml"
        config.write_text(yaml.safe_dump({"problem": problem, "output": {"directory": "out", "picture": False}}))
        poisson("run", config, "--overwrite", *more, **options)
        return poisson.record()
    return run


def box(cells, extent=(1, 1, 1), k="1", f="1", boundary=(ZERO,)):
    return {"mesh": {"generator": "box", "cells": list(cells), "extent": list(extent)}, "coefficient": k, "source": f, "boundary": list(boundary)}


@pytest.mark.parametrize("problem", [
    box((48, 48, 12), (1, 1, 0.01), boundary=HELD),                                    # a plate
    box((200, 6, 6), (100, 1, 1), boundary=HELD),                                      # a bar
    box((32, 32, 8), (0.01, 0.01, 0.0005), "150", "1e9", HELD),                        # a chip, in metres
    box((24, 24, 24), k="(x-0.5)^2+(y-0.5)^2+(z-0.5)^2 < 0.09 ? 1e6 : 1"),             # a jump that follows no cell
], ids=["plate", "bar", "chip", "jump"])
def test_defaults_hold(solve, problem):
    record = solve(problem)
    assert record["status"] == "converged"
    assert record["solver"]["residual_true"] <= 2e-12
    # What double cannot do is finished by refined, and said.
    if record["solver"]["precision"] == "refined":
        assert any("went on as refined" in note for note in record["solver"]["notes"])
    else:
        assert record["solver"]["precision"] == "double" and "notes" not in record["solver"]


def test_double_asked_for_stays_double(solve):
    record = solve(box((24, 24, 24), k="(x-0.5)^2+(y-0.5)^2+(z-0.5)^2 < 0.09 ? 1e6 : 1"), "--set", "solver.precision=double", code=2)
    assert record["status"] == "stagnated" and record["solver"]["precision"] == "double"


def test_record_of_multigrid(solve, poisson):
    done = solve(box((32, 32, 32)), "--set", "solver.preconditioner=multigrid")
    solver = done["solver"]
    assert done["status"] == "converged" and solver["preconditioner"] == "multigrid" and solver["iterations"] <= 11
    multigrid = solver["multigrid"]
    assert [level["rows"] for level in multigrid["levels"]] == [33**3, 17**3, 9**3, 5**3]
    assert multigrid["bytes"] == sum(level["bytes"] for level in multigrid["levels"])
    assert 1.1 < multigrid["operator_complexity"] < 1.3
    assert 0 < multigrid["convergence_factor"] < 0.1
    assert "auto" not in solver


@pytest.mark.parametrize("mesh, order", [({"generator": "hyper_ball", "refinements": 3}, 1), ({"generator": "hyper_ball", "refinements": 2}, 2),
                                         ({"generator": "hyper_shell", "arguments": "0, 0, 0 : 0.5 : 1 : 6", "refinements": 3}, 1)], ids=["ball", "ball of order 2", "shell"])
def test_any_mesh(solve, mesh, order):
    problem = {"mesh": mesh, "element": {"order": order}, "source": "1", "boundary": [ZERO]}
    record = solve(problem, "--set", "solver.preconditioner=multigrid")
    assert record["status"] == "converged" and record["solver"]["iterations"] <= 25


@pytest.mark.parametrize("format", ["csr", "cod_sell", "sell_c_sigma", "matrix_free"])
def test_any_format(solve, format):
    record = solve(box((16, 16, 16)), "--set", "solver.preconditioner=multigrid", "--set", f"matrix.format={format}")
    assert record["status"] == "converged" and record["solver"]["iterations"] <= 11 and record["matrix"]["format"] == format


def test_keys(solve, poisson):
    for setting in ("cycle=w", "smoother=jacobi", "degree=3", "precision=double", "levels=2", "coarse_size=10"):
        record = solve(box((12, 12, 12)), "--set", "solver.preconditioner=multigrid", "--set", f"solver.multigrid.{setting}")
        assert record["status"] == "converged" and record["solver"]["iterations"] <= 25, setting
    assert len(solve(box((12, 12, 12)), "--set", "solver.preconditioner=multigrid", "--set", "solver.multigrid.levels=2")["solver"]["multigrid"]["levels"]) == 2
    config = poisson.directory / "config.yaml"
    assert "is not symmetric, and cg needs that" in poisson("run", config, "--overwrite", "--set", "solver.multigrid.cycle=f", "--set", "solver.preconditioner=multigrid", code=1).stderr
    assert "Allowed: v, w, f" in poisson("check", config, "--set", "solver.multigrid.cycle=x", code=1).stderr


def test_half_is_single_where_it_does_not_pay(solve):
    """Levels of a box, and all levels on the CPU, are not in half."""
    for matrix in ("half_cds", "csr"):
        of_single, of_half = (solve(box((20, 20, 20)), "--set", "solver.preconditioner=multigrid", "--set", f"solver.multigrid.precision={precision}",
                                    "--set", f"matrix.format={matrix}", "--set", "backend=cpu")["solver"] for precision in ("single", "half"))
        assert of_half["iterations"] == of_single["iterations"] and of_half["residual_recursive"] == of_single["residual_recursive"]


def test_the_choice_is_shown(solve, poisson):
    record = solve(box((40, 40, 40)))
    table = record["solver"]["auto"]
    assert {row["preconditioner"] for row in table} >= {"multigrid"}
    assert table[0]["preconditioner"] == record["solver"]["preconditioner"]
    assert table[0]["total_seconds"] <= table[1]["total_seconds"]
    assert "iteration ms" in poisson("run", poisson.directory / "config.yaml", "--overwrite", "--verbose").stdout
