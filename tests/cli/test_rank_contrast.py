"""Materials that conduct very differently, and singular systems from files, on several ranks."""

import numpy as np
import pytest
from test_contrast import LAYERS, QUIET, SERIES
from ranks import on_ranks, pytestmark  # noqa: F401
from test_solve import general, neumann_laplacian, solution, vector


@pytest.mark.parametrize("n, text, flux", [(2, LAYERS % "1e-12", 4e-12), (3, LAYERS % "1e12", 4 / 3), (2, SERIES % "1e16", 2)],
                         ids=["layer", "metal", "held"])
def test_fluxes(poisson, n, text, flux):
    poisson.write(text + QUIET, "case.yaml")
    on_ranks(poisson, n, "run", "case.yaml", "--output", "out", "--quiet", "--threads", "1")
    record = poisson.record()
    through = [v for k, v in record["quantities"].items() if k.startswith("flux.") and abs(v) > 1e-3 * flux]
    assert record["status"] == "converged" and record["warnings"] == [] and record["quantities"]["balance"] <= 1e-6
    assert sorted(through) == pytest.approx([-flux, flux], rel=1e-6)


SIDES = "{ids: all, type: neumann, value: \"0\"}"
PERIODIC = LAYERS.replace(SIDES, "{ids: [2, 3], type: periodic}\n    - {ids: [4, 5], type: periodic}")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_between_periodic_sides(poisson, n):
    poisson.write(PERIODIC % "1e12" + QUIET, "case.yaml")
    words = ["run", "case.yaml", "--output", "out", "--quiet", "--threads", "1"]
    poisson(*words) if n == 1 else on_ranks(poisson, n, *words)
    record, q = poisson.record(), poisson.record()["quantities"]
    assert record["status"] == "converged" and record["warnings"] == [] and record["solver"]["corrections"] > 0
    assert q["flux.1"] == pytest.approx(4 / 3, rel=1e-6) and q["flux.0"] == pytest.approx(-4 / 3, rel=1e-6)
    assert q["probe.m"] == pytest.approx(2 / 3, rel=1e-6) and 2 * q["energy"] == pytest.approx(4 / 3, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("text, high", [(LAYERS, "1e12"), (LAYERS, "1e14"), (PERIODIC, "1e10"), (PERIODIC, "1e13")])
def test_a_metal_with_given_fluxes_alone(poisson, n, text, high):
    text = text.replace('{ids: [0], type: dirichlet, value: "1"}', '{ids: [0], type: neumann, value: "1"}')
    text = text.replace('{ids: [1], type: dirichlet, value: "0"}', '{ids: [1], type: neumann, value: "-1"}')
    poisson.write(text % high + QUIET, "case.yaml")
    words = ["run", "case.yaml", "--output", "out", "--quiet", "--threads", "1"]
    poisson(*words) if n == 1 else on_ranks(poisson, n, *words)
    record, q = poisson.record(), poisson.record()["quantities"]
    assert record["status"] == "converged" and record["warnings"] == []
    assert q["probe.m"] - q["probe.r"] == pytest.approx(0.25, rel=1e-6) and q["energy"] == pytest.approx(0.375, rel=1e-6)
    assert q["max"] - q["min"] == pytest.approx(0.75, rel=1e-6) and abs(q["mean"]) < 1e-6


def test_rows_that_sum_to_zero(poisson):
    a = neumann_laplacian(5)
    b = np.cos(np.arange(125) * 0.7)
    b -= b.mean()
    poisson.write(general(a), "a.mtx")
    poisson.write(vector(b), "b.mtx")
    on_ranks(poisson, 2, "solve", "--matrix", "a.mtx", "--rhs", "b.mtx", "--output", "out", "--quiet", "--set", "solver.preconditioner=multigrid",
             "--set", "solver.multigrid.coarse_size=30")
    record = poisson.record()
    assert record["status"] == "converged" and "its rows sum to zero" in record["warnings"][0]
    assert np.allclose(solution(poisson), np.linalg.pinv(a) @ b, rtol=0, atol=1e-9)
