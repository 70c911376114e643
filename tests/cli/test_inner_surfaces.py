"""Surfaces inside a mesh, by name: thin electrodes, sources on them, and the heat that flows through them."""

import pytest
from ranks import on_ranks, pytestmark as needs_mpi

NODES = [(i / 2, j / 2, k / 2) for k in range(3) for j in range(3) for i in range(5)]


def number(x, y, z):
    return NODES.index((x, y, z)) + 1


def plate(materials=(5, 4)):
    """[0, 2] x [0, 1]^2 with the surface x = 1 between two materials."""
    lines = []
    for tag, x in ((1, 0), (2, 2), (7, 1)):
        for j in (0, 0.5):
            for k in (0, 0.5):
                quad = [number(x, j, k), number(x, j + 0.5, k), number(x, j + 0.5, k + 0.5), number(x, j, k + 0.5)]
                lines.append(f"3 2 {tag} {tag} " + " ".join(map(str, quad)))
    for k in (0, 0.5):
        for j in (0, 0.5):
            for i in (0, 0.5, 1, 1.5):
                corners = [(0, 0, 0), (0.5, 0, 0), (0.5, 0.5, 0), (0, 0.5, 0), (0, 0, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0.5), (0, 0.5, 0.5)]
                lines.append(f"5 2 {materials[0] if i < 1 else materials[1]} 1 " + " ".join(str(number(i + a, j + b, k + c)) for a, b, c in corners))
    names = ['2 1 "left"', '2 2 "right"', '2 7 "electrode"', '3 4 "board"', '3 5 "die"']
    return ("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n%d\n%s\n$EndPhysicalNames\n" % (len(names), "\n".join(names))
            + "$Nodes\n%d\n%s\n$EndNodes\n" % (len(NODES), "\n".join(f"{i + 1} {x} {y} {z}" for i, (x, y, z) in enumerate(NODES)))
            + "$Elements\n%d\n%s\n$EndElements\n" % (len(lines), "\n".join(f"{i + 1} {line}" for i, line in enumerate(lines))))


def config(poisson, condition, order=1, refinements=0, rest=""):
    (poisson.directory / "plate.msh").write_text(plate())
    return poisson.write(f"""
problem:
  mesh: {{file: plate.msh, refinements: {refinements}}}
  element: {{order: {order}}}
  boundary:
    - {{names: [left, right], type: dirichlet, value: "0"}}
    {condition}
    - {{ids: all, type: neumann, value: "0"}}
output: {{picture: false, report: false, vtk: {{enabled: false}}, quantities: {{charge: "-flux.electrode"}}}}
{rest}
""")


ELECTRODE = "- {names: [electrode], type: dirichlet, value: '1'}"


def is_right(record):
    q = record["quantities"]
    assert record["status"] == "converged"
    assert q["energy"] == pytest.approx(1, rel=1e-9) and q["charge"] == pytest.approx(2, rel=1e-9)
    assert q["flux.left"] == pytest.approx(1, rel=1e-9) and q["flux.right"] == pytest.approx(1, rel=1e-9)
    assert q["area.electrode"] == pytest.approx(1, rel=1e-12)
    assert q["max"] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("order, refinements, solver", [
    (1, 0, ""), (1, 2, "solver: {preconditioner: multigrid}"), (2, 2, "solver: {preconditioner: multigrid}"),
    (1, 2, "matrix: {format: cod_sell}")])
def test_an_electrode(poisson, order, refinements, solver):
    poisson("run", config(poisson, ELECTRODE, order, refinements, solver), "--output", "out", "--quiet", "--backend", "cpu")
    is_right(poisson.record())


@needs_mpi
@pytest.mark.parametrize("n, order, refinements", [(2, 1, 0), (3, 2, 2)])
def test_an_electrode_on_ranks(poisson, n, order, refinements):
    on_ranks(poisson, n, "run", config(poisson, ELECTRODE, order, refinements), "--output", "out", "--quiet", "--backend", "cpu")
    is_right(poisson.record())


@needs_mpi
def test_a_source_and_a_flux_on_ranks(poisson):
    path = config(poisson, "- {ids: [7], type: neumann, value: '3'}", 2)
    on_ranks(poisson, 2, "run", path, "--output", "out", "--quiet", "--backend", "cpu")
    q = poisson.record()["quantities"]
    assert q["flux.electrode"] == pytest.approx(-3, rel=1e-12) and q["flux.left"] == pytest.approx(1.5, rel=1e-9)
    free = config(poisson, "", 2, 0)
    on_ranks(poisson, 2, "run", free, "--output", "out", "--overwrite", "--quiet", "--backend", "cpu",
             "--set", "problem.source={die: '1', default: '0'}")
    q = poisson.record()["quantities"]
    assert q["flux.electrode"] == pytest.approx(q["flux.left"] - 1, rel=1e-9)  # from board (4) to die (5)
    assert q["flux.electrode"] == pytest.approx(-q["flux.right"], rel=1e-9)


def test_a_probe_on_an_electrode_says_its_side(poisson):
    path = config(poisson, ELECTRODE)
    probe = "output.probes=[{name: tip, at: [1, 0.3, 0.4]}]"
    for materials, side, gradient in (((5, 4), "'board'", -1), ((4, 4), "smaller x", 1)):
        (poisson.directory / "plate.msh").write_text(plate(materials))
        done = poisson("run", path, "--output", "out", "--overwrite", "--quiet", "--backend", "cpu", "--set", probe)
        assert f"its gradient and flux are those in {'the cell at its side of ' if gradient > 0 else ''}{side}" in done.stderr
        assert poisson.record()["quantities"]["probe.tip.gradient"] == pytest.approx([gradient, 0, 0], abs=1e-9)


def test_check_lists_it_and_other_conditions_are_refused(poisson):
    assert "Surfaces inside the mesh" in poisson("check", config(poisson, ELECTRODE)).stdout
    done = poisson("run", config(poisson, "- {names: [electrode], type: robin, alpha: '1'}"), "--output", "out", code=1)
    assert "problem.boundary[1].names[0]" in done.stderr and "inside the mesh" in done.stderr
    done = poisson("run", config(poisson, ELECTRODE, rest="matrix: {format: matrix_free}"), "--output", "out", code=1)
    assert "matrix.format" in done.stderr and "inside the mesh" in done.stderr
