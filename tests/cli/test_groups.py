"""Groups of mesh files that overlap: quantities, the record, `check` and ranks count every face and cell in all of its groups."""

import pytest
from ranks import on_ranks, pytestmark  # noqa: F401


def bar(n=4):
    """[0, 2] x [0, 1] x [0, 1] in 2n x 1 x 1 cells, as Gmsh's version 2.2 has it: an element of two groups is listed twice."""
    node = lambda x, y, z: 1 + x + (2 * n + 1) * (y + 2 * z)  # noqa: E731
    nodes = [f"{node(x, y, z)} {x / n} {y} {z}" for z in (0, 1) for y in (0, 1) for x in range(2 * n + 1)]
    elements = []
    for group, x in ((1, 0), (3, 0), (2, 2 * n), (3, 2 * n), (4, n)):
        elements.append(f"3 2 {group} {x + 1} {node(x, 0, 0)} {node(x, 1, 0)} {node(x, 1, 1)} {node(x, 0, 1)}")
    for x in range(2 * n):
        around = [(x, 0), (x + 1, 0), (x + 1, 1), (x, 1)]
        for group in (1 if x < n else 2, 3):
            elements.append(f"5 2 {group} {x + 1} " + " ".join(str(node(i, j, z)) for z in (0, 1) for i, j in around))
    names = ['2 1 "in"', '2 2 "out"', '2 3 "ends"', '2 4 "middle"', '3 1 "left-1"', '3 2 "right-1"', '3 3 "all"']
    section = lambda name, lines: f"${name}\n{len(lines)}\n" + "\n".join(lines) + f"\n$End{name}\n"  # noqa: E731
    return ("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n" + section("PhysicalNames", names) + section("Nodes", nodes)
            + section("Elements", [f"{i + 1} {e}" for i, e in enumerate(elements)]))


CASE = """
problem:
  mesh: {file: bar.msh}
  coefficient: {left-1: "10", right-1: "1"}
  boundary:
    - {names: [in], type: dirichlet, value: "1"}
    - {ids: [2], type: dirichlet, value: "0"}
    - {ids: all, type: neumann, value: "0"}
output: {picture: false, report: false}
"""


def expect(record):
    quantities = record["quantities"]
    flux = 1 / (1 / 10 + 1)
    assert quantities["flux.in"] == pytest.approx(-flux, rel=1e-9)
    assert quantities["flux.out"] == pytest.approx(flux, rel=1e-9)
    assert quantities["flux.ends"] == pytest.approx(0, abs=1e-9)
    assert [quantities[f"area.{name}"] for name in ("in", "out", "ends", "0")] == pytest.approx([1, 1, 2, 8])
    assert [quantities[f"volume.{name}"] for name in ("left-1", "right-1", "all")] == pytest.approx([1, 1, 2])
    assert sum(name.startswith("area.") for name in quantities) == 5  # the last is the surface inside the mesh
    assert quantities["flux.middle"] == pytest.approx(flux, rel=1e-9) and quantities["area.middle"] == pytest.approx(1)
    assert quantities["max.middle"] == quantities["mean.middle"] == pytest.approx(1 - flux / 10)
    names, groups = record["mesh"]["boundary_names"], record["mesh"]["boundary_groups"]
    assert sorted(names.values()) == ["in + ends", "out + ends"]
    assert sorted(groups["ends"]) == sorted(map(int, names)) and len(groups["in"]) == 1


def test_fluxes_areas_and_volumes(poisson):
    poisson.write(bar(), "bar.msh")
    config = poisson.write(CASE)
    poisson("run", config, "--output", "out", "--quiet", "--backend", "cpu")
    expect(poisson.record())
    on_ranks(poisson, 2, "run", config, "--output", "ranks", "--quiet", "--backend", "cpu")
    expect(poisson.record("ranks"))


def test_check_lists_groups_and_what_they_share(poisson):
    poisson.write(bar(), "bar.msh")
    text = poisson("check", poisson.write(CASE)).stdout
    rows = {words[2]: words for line in text.splitlines() if len(words := line.split()) > 5 and words[0] == "#" and words[1].isdigit()}
    assert rows["in"][1:5] == ["1", "in", "1", "1"]
    assert rows["ends"][1:5] == ["3", "ends", "2", "2"]
    assert rows["left-1"][1:5] == ["1", "left-1", "4", "1"]
    assert rows["all"][1:5] == ["3", "all", "8", "2"]
    assert "in several of them: 1 faces (area 1) belong to in + ends" in text
    assert "in several of them: 4 cells (volume 1) belong to left-1 + all" in text


def test_a_surface_inside_the_mesh_holds_u(poisson):
    poisson.write(bar(), "bar.msh")
    for value in ("names: [middle]", "ids: [4]"):
        poisson("run", poisson.write(CASE.replace("ids: [2]", value)), "--output", "out", "--quiet", "--overwrite", "--backend", "cpu")
        quantities = poisson.record()["quantities"]
        assert quantities["flux.in"] == pytest.approx(-10) and quantities["flux.middle"] == pytest.approx(10)
        assert quantities["energy"] == pytest.approx(5) and quantities["balance"] < 1e-12
    robin = CASE.replace("ids: [2], type: dirichlet, value: \"0\"", "names: [middle], type: robin, alpha: \"1\"")
    assert "lies inside the mesh" in poisson("run", poisson.write(robin), "--output", "bad", "--quiet", code=1).stderr
