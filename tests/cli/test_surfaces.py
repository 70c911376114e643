"""Closed surfaces (.stl), whose inside becomes voxels: against exact volumes and areas, and points that are inside or not."""

import math
import random
import re
import struct

import pytest

CASE = """
output: {picture: false, report: false, vtk: {enabled: false}}
problem:
  mesh: {file: part.stl, size: 0.1}
  boundary: [{ids: all, type: dirichlet, value: "x + 2*y - 3*z"}]
  exact: "x + 2*y - 3*z"
"""


def cube(low=(0, 0, 0), high=(1, 1, 1)):
    """12 triangles, counterclockwise from outside."""
    corner = [[(high if v >> d & 1 else low)[d] for d in range(3)] for v in range(8)]
    quads = [(0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6)]
    return [tuple(corner[v] for v in t) for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]


def sphere(radius, centre=(0, 0, 0), divisions=4):
    """An octahedron whose triangles are cut into four again and again, on the sphere."""
    def on_sphere(p):
        return tuple(x / math.hypot(*p) for x in p)

    def middle(a, b):
        return on_sphere([x + y for x, y in zip(*sorted((a, b)))])

    triangles = []
    for sx in (1, -1):
        for sy in (1, -1):
            for sz in (1, -1):
                t = ((sx, 0, 0), (0, sy, 0), (0, 0, sz))
                triangles.append(t if sx * sy * sz > 0 else t[::-1])
    for _ in range(divisions):
        triangles = [t for a, b, c in triangles for ab, bc, ca in [(middle(a, b), middle(b, c), middle(c, a))]
                     for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
    return [tuple(tuple(radius * x + m for x, m in zip(p, centre)) for p in t) for t in triangles]


def reverse(triangles):
    return [t[::-1] for t in triangles]


def text_form(triangles, name="part"):
    lines = [f"solid {name}"]
    for t in triangles:
        lines += [" facet normal 0 0 0", "  outer loop", *[f"   vertex {' '.join(repr(float(x)) for x in p)}" for p in t], "  endloop", " endfacet"]
    return "\n".join([*lines, f"endsolid {name}", ""])


def binary_form(triangles, head=b"solid in name only"):
    return head.ljust(80, b" ") + struct.pack("<I", len(triangles)) + b"".join(
        struct.pack("<12fH", 0, 0, 0, *[x for p in t for x in p], 0) for t in triangles)


def volume(triangles):
    return sum(a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]) for a, b, c in triangles) / 6


def area(triangles):
    def of_one(a, b, c):
        u, v = [[y - x for x, y in zip(a, p)] for p in (b, c)]
        return math.hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]) / 2
    return sum(of_one(*t) for t in triangles)


def run(poisson, surface, *sets, name="part.stl"):
    poisson.write(surface, name)
    poisson("run", poisson.write(CASE.replace("part.stl", name)), "--output", "out", "--overwrite", "--quiet", "--backend", "cpu",
            *[f"--set={s}" for s in sets])
    return poisson.record()


@pytest.mark.parametrize("form", [text_form, binary_form])
def test_a_cube_is_a_cube(poisson, form):
    record = run(poisson, form(cube((0, 0, 0), (1, 2, 0.5))))
    assert record["mesh"]["cells"] == 10 * 20 * 5 and record["mesh"]["vertices"] == 11 * 21 * 6
    assert record["quantities"]["volume.0"] == pytest.approx(1) and record["quantities"]["area.0"] == pytest.approx(7)
    fit = record["mesh"]["surface"]
    assert fit == pytest.approx({"volume": 1, "area": 7, "voxels_volume": 1, "voxels_area": 7})
    assert record["errors"]["linf"] < 1e-9 and record["mesh"]["quality"]["worst"] == pytest.approx(1)


def test_cells_of_the_box_around_it(poisson):
    record = run(poisson, text_form(cube((0, 0, 0), (1, 2, 0.5))), "problem.mesh={file: part.stl, cells: [3, 4, 5]}")
    assert record["mesh"]["cells"] == 3 * 4 * 5 and record["quantities"]["volume.0"] == pytest.approx(1)
    done = poisson("check", poisson.write(CASE), "--set", "problem.mesh.cells=[3, 4, 5]", code=1)
    assert "problem.mesh.cells" in done.stderr and "size" in done.stderr


def test_size_and_scale(poisson):
    record = run(poisson, text_form(cube()), "problem.mesh={file: part.stl, size: 0.3e-3, scale: 1e-3}")
    # Four voxels of 0.3 cover the edge, and go beyond both ends alike; all their centres are inside.
    assert record["mesh"]["cells"] == 64
    assert record["mesh"]["origin"] == pytest.approx([-0.1e-3] * 3) and record["mesh"]["extent"] == pytest.approx([1.2e-3] * 3)
    assert record["mesh"]["surface"] == pytest.approx({"volume": 1e-9, "area": 6e-6, "voxels_volume": 1.728e-9, "voxels_area": 6 * 1.44e-6})


@pytest.mark.parametrize("form", [text_form, binary_form])
def test_a_sphere(poisson, form):
    surface = sphere(0.5, (1, 2, 3))
    errors = []
    for size in (0.1, 0.05):
        record = run(poisson, form(surface), f"problem.mesh.size={size}")
        fit = record["mesh"]["surface"]
        assert fit["volume"] == pytest.approx(volume(surface), rel=1e-5) and fit["area"] == pytest.approx(area(surface), rel=1e-5)
        assert fit["voxels_volume"] == pytest.approx(record["quantities"]["volume.0"], rel=1e-9)
        assert fit["voxels_area"] == pytest.approx(record["quantities"]["area.0"], rel=1e-9)
        assert fit["voxels_area"] == pytest.approx(1.5 * math.pi, rel=0.1)  # of stairs it is that of the three projections, twice
        errors.append(abs(fit["voxels_volume"] / fit["volume"] - 1))
        assert record["errors"]["linf"] < 1e-9
    assert errors[0] < 0.08 and errors[1] < 0.02, errors
    stairs = poisson("check", poisson.write(CASE)).stdout
    assert re.search(r"#   surface .*volume 0\.5[12]\d+.*in voxels 0\.5.*area 3\.1.*in voxels 4\.\d+", stairs), stairs


def centres_inside(surface_is_inside, low, n, h):
    return sum(surface_is_inside(*[low[d] + (i[d] + 0.5) * h for d in range(3)]) for k in range(n[2]) for j in range(n[1])
               for i in [(a, j, k) for a in range(n[0])])


def test_every_voxel_of_a_sphere_with_a_cavity(poisson):
    """Point by point: the polyhedra are so close to spheres that no centre lies between."""
    surface = sphere(0.5, divisions=6) + reverse(sphere(0.23, (0.1, 0, 0), divisions=6))
    record = run(poisson, binary_form(surface), "problem.mesh.size=0.0625")

    def is_inside(x, y, z):
        assert abs(math.hypot(x, y, z) - 0.5) > 2e-4 and abs(math.hypot(x - 0.1, y, z) - 0.23) > 2e-4
        return math.hypot(x, y, z) < 0.5 < 1 and math.hypot(x - 0.1, y, z) > 0.23

    assert record["mesh"]["cells"] == centres_inside(is_inside, (-0.5, -0.5, -0.5), (16, 16, 16), 0.0625)
    assert record["mesh"]["surface"]["volume"] == pytest.approx(4 / 3 * math.pi * (0.5**3 - 0.23**3), rel=1e-3)


@pytest.mark.parametrize("n", [5, 9, 15])
def test_corners_and_edges_right_above_centres_do_not_leak(poisson, n):
    """The octahedron's corners and edges lie in the planes x = 0 and y = 0, where an odd number of voxels has centres."""
    record = run(poisson, text_form(sphere(0.5, divisions=6)), f"problem.mesh={{file: part.stl, cells: [{n}, {n}, {n}]}}")

    def is_inside(x, y, z):
        assert abs(math.hypot(x, y, z) - 0.5) > 1e-4
        return math.hypot(x, y, z) < 0.5

    assert record["mesh"]["cells"] == centres_inside(is_inside, (-0.5, -0.5, -0.5), (n, n, n), 1 / n)


def test_bodies_that_overlap_are_one(poisson):
    record = run(poisson, text_form(cube()) + text_form(cube((0.5, 0, 0), (1.5, 1, 1))))
    assert record["mesh"]["cells"] == 1500
    assert record["mesh"]["surface"]["volume"] == pytest.approx(2)  # of the surface, which counts the common part twice


def test_a_surface_that_is_inside_out(poisson):
    record = run(poisson, text_form(reverse(cube())))
    assert record["mesh"]["cells"] == 1000 and record["mesh"]["surface"]["volume"] == pytest.approx(1)


def test_thin_triangles_and_those_without_area(poisson):
    a, b, c = (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.0)
    upper = [t for t in cube() if any(p[2] != 1 for p in t)] + [(a, b, (0.5, 0.5, 1.0)), (b, c, (0.5, 0.5, 1.0)), (c, (0.0, 1.0, 1.0), (0.5, 0.5, 1.0)),
                                                                ((0.0, 1.0, 1.0), a, (0.5, 0.5, 1.0))]
    record = run(poisson, text_form(upper + [(a, a, b)]))
    assert record["mesh"]["cells"] == 1000
    assert any("1 triangle has a corner twice" in warning for warning in record["warnings"])


@pytest.mark.parametrize("n_missing,words", [(1, "3 free edges"), (2, "4 free edges")])
def test_a_surface_with_a_hole_is_refused(poisson, n_missing, words):
    poisson.write(text_form(cube()[n_missing:]), "part.stl")
    done = poisson("check", poisson.write(CASE), code=1)
    assert f"not closed: it has {words}, the first from (" in done.stderr, done.stderr


def test_a_triangle_that_is_turned_is_refused(poisson):
    triangles = cube()
    poisson.write(text_form([triangles[0][::-1]] + triangles[1:]), "part.stl")
    assert "do not agree where outside is: at 3 edges" in poisson("check", poisson.write(CASE), code=1).stderr


WHOLE = text_form(cube())
BINARY = binary_form(cube())


@pytest.mark.parametrize("content,message", [
    ("", "the file is empty"), ("solid\n", "ends where 'facet' should be"), ("solid\nendsolid\n", "has no triangles"), ("nonsense", "no STL file"),
    (WHOLE[:-30], r"part.stl', line \d+"), (WHOLE.replace("vertex 0.0", "vertex nan", 1), "line 4"), (WHOLE.replace("endloop", "endlop", 1), "line 7.*'endlop'"),
    (BINARY[:-1], "announces 12 triangles, which take 684 bytes, and it has 683"), (BINARY + b"x", "and it has 685"), (BINARY[:60], "ends where 'facet' should be"), (BINARY[5:60], "no STL file"),
    (BINARY[:96] + struct.pack("<f", math.nan) + BINARY[100:], "a coordinate"), (binary_form([]), "has no triangles"),
    (text_form([t for t in cube() if all(p[2] == 0 for p in t)] * 1 + reverse([t for t in cube() if all(p[2] == 0 for p in t)])), "flat")])
def test_damaged_surfaces(poisson, content, message):
    poisson.write(content, "part.stl")
    done = poisson("check", poisson.write(CASE), code=1)
    assert re.search(message, done.stderr) and "problem.mesh.file" in done.stderr, done.stderr


def test_random_damage(poisson):
    """The program ends by itself, and says what is wrong where it refuses."""
    random.seed(2)
    for whole in (WHOLE.encode(), BINARY):
        for _ in range(12):
            damaged = bytearray(whole)
            for _ in range(random.randint(1, 4)):
                damaged[random.randrange(len(damaged))] = random.randrange(32, 127)
            poisson.write(bytes(damaged[:random.choice([len(damaged), random.randrange(len(damaged))])]), "part.stl")
            done = poisson("check", poisson.write(CASE), "--set", "problem.mesh={file: part.stl, cells: [4, 4, 4]}", code=(0, 1))
            assert done.returncode == 0 or "part.stl" in done.stderr, done.stderr


def test_too_coarse_and_too_fine(poisson):
    poisson.write(text_form(sphere(0.01) + sphere(0.01, (1, 1, 1))), "part.stl")
    coarse = poisson("check", poisson.write(CASE), "--set", "problem.mesh={file: part.stl, cells: [3, 3, 3]}", code=1)
    assert "no voxel has its centre inside" in coarse.stderr
    assert re.search("more than 2147483647 voxels|memory", poisson("check", poisson.write(CASE), "--set", "problem.mesh.size=1e-5", code=(1, 3)).stderr)


def test_refinements_and_a_gz_file(poisson):
    import gzip

    record = run(poisson, gzip.compress(binary_form(sphere(0.5))), "problem.mesh.refinements=1", "problem.mesh.size=0.125", name="part.stl.gz")
    assert record["errors"]["linf"] < 1e-9 and record["mesh"]["cells"] % 8 == 0
