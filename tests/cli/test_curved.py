"""Cells of mesh files that have curved shapes: they keep them with elements of any order."""

import math

import pytest
from ranks import on_ranks

HEAD = """
output: {picture: false, report: false, vtk: {enabled: false}}
problem:
  mesh:
    file: ring.vtu
    boundaries: [{name: inner, where: "x^2 + y^2 < 1.1"}, {name: outer, where: "x^2 + y^2 > 3.8"}]
"""


def write_ring(path, order, cells=3):
    """A quarter of a ring, 1 <= r <= 2, 0 <= z <= 0.5, in cells whose sides are polynomials through points on the circles."""
    from vtkmodules.vtkCommonDataModel import vtkHigherOrderHexahedron

    n = order + 1
    points, connectivity = [], []
    numbers = {}
    for c in range(cells):
        of_cell = [0] * n**3
        for k in range(n):
            for j in range(n):
                for i in range(n):
                    place = (i, c * order + j, k)
                    if place not in numbers:
                        r, angle, z = 1 + i / order, math.pi / 2 * (c * order + j) / (cells * order), 0.5 * k / order
                        numbers[place] = len(points)
                        points.append((r * math.cos(angle), r * math.sin(angle), z))
                    of_cell[vtkHigherOrderHexahedron.PointIndexFromIJK(i, j, k, [order] * 3)] = numbers[place]
        connectivity.append(of_cell)

    def array(kind, name, values, more=""):
        return f'<DataArray type="{kind}" Name="{name}" {more} format="ascii">{" ".join(map(str, values))}</DataArray>'

    path.write_text(f"""<VTKFile type="UnstructuredGrid" version="2.1" byte_order="LittleEndian" header_type="UInt64"><UnstructuredGrid>
<Piece NumberOfPoints="{len(points)}" NumberOfCells="{cells}">
<Points>{array("Float64", "Points", [repr(v) for p in points for v in p], 'NumberOfComponents="3"')}</Points>
<Cells>{array("Int64", "connectivity", [v for cell in connectivity for v in cell])}
{array("Int64", "offsets", [n**3 * (c + 1) for c in range(cells)])}
{array("UInt8", "types", [72] * cells)}</Cells></Piece></UnstructuredGrid></VTKFile>""")


def run(poisson, text, *sets, ranks=1):
    words = ["run", poisson.write(HEAD + text), "--output", "out", "--overwrite", "--quiet", "--backend", "cpu", *[f"--set={s}" for s in sets]]
    poisson(*words) if ranks == 1 else on_ranks(poisson, ranks, *words)
    return poisson.record()


def area_of_outer(order, cells=3):
    """Of the polynomials through equidistant points on the circle r = 2, times the height 0.5: the length of many short chords."""
    nodes = [i / order for i in range(order + 1)]
    step = math.pi / 2 / cells

    def place(t):
        x = y = 0
        for node in nodes:
            weight = math.prod((t - b) / (node - b) for b in nodes if b != node)
            x, y = x + weight * 2 * math.cos(step * node), y + weight * 2 * math.sin(step * node)
        return x, y

    n = 2000
    points = [place(i / n) for i in range(n + 1)]
    return 0.5 * cells * sum(math.dist(a, b) for a, b in zip(points, points[1:]))


HEATED = """
  boundary:
    - {names: [outer], type: neumann, value: "3"}
    - {names: [inner], type: dirichlet, value: "0"}
    - {ids: all, type: neumann, value: "0"}
"""


@pytest.mark.parametrize("shape,order,refinements,ranks", [(2, 1, 0, 1), (2, 2, 0, 1), (3, 1, 0, 1), (3, 2, 0, 1), (2, 1, 2, 1), (2, 1, 1, 2),
                                                           (2, 1, 2, 2)])
def test_curved_cells_keep_their_shape_with_elements_of_any_order(poisson, shape, order, refinements, ranks):
    write_ring(poisson.directory / "ring.vtu", shape)
    q = run(poisson, HEATED, f"problem.element.order={order}", f"problem.mesh.refinements={refinements}", ranks=ranks)["quantities"]
    # The same whatever the element. Flat facets have 1.5529.
    assert abs(area_of_outer(shape) - math.pi / 2) < 2e-4
    assert q["area.outer"] == pytest.approx(area_of_outer(shape), abs=2e-6)
    assert q["flux.outer"] == pytest.approx(-3 * q["area.outer"], rel=1e-12)
    assert q["flux.inner"] == pytest.approx(3 * q["area.outer"], rel=1e-9)
    assert q["volume.0"] == pytest.approx(3 * math.pi / 8, rel=1e-3 if shape == 2 else 1e-4)


@pytest.mark.parametrize("shape,order,ranks", [(2, 2, 1), (3, 3, 1), (2, 3, 1), (3, 3, 2)])
def test_linear_solutions_are_exact_on_curved_cells(poisson, shape, order, ranks):
    # The maps of the cells, and so x, y and z, are among the functions of the element, and the quadrature is exact for them.
    write_ring(poisson.directory / "ring.vtu", shape)
    linear = """
  exact: "x + 2*y - 3*z"
  boundary: [{names: [outer], type: dirichlet, value: "x + 2*y - 3*z"}, {names: [inner], type: dirichlet, value: "x + 2*y - 3*z"},
             {ids: all, type: dirichlet, value: "x + 2*y - 3*z"}]
"""
    record = run(poisson, linear, f"problem.element.order={order}", "problem.mesh.refinements=1", ranks=ranks)
    assert record["errors"]["linf"] < 1e-10 and record["errors"]["h1_seminorm"] < 1e-9, record["errors"]
    assert not record["warnings"], record["warnings"]
