"""Drawings (STEP, BREP, .geo), of which the program gmsh makes the mesh: against exact volumes, areas and fluxes."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import EXECUTABLE
from ranks import pytestmark as needs_mpi
from ranks import ranks_command

GMSH = shutil.which("gmsh")
needs_gmsh = pytest.mark.skipif(GMSH is None, reason="there is no gmsh (Debian's package gmsh)")

NO_FILES = "output: {picture: false, report: false, vtk: {enabled: false}}\n"
LINEAR = NO_FILES + """
problem:
  mesh: {file: part.geo, size: 0.3}
  boundary: [{ids: all, type: dirichlet, value: "x + 2*y - 3*z"}]
  exact: "x + 2*y - 3*z"
"""
BOX = 'SetFactory("OpenCASCADE");\nBox(1) = {0, 0, 0, 1, 2, 0.5};\n'
BOX_WITH_NAMES = BOX + """
Physical Volume("block") = {1};
Physical Surface("left") = {1};
Physical Surface("right") = {2};
"""
BRICKS = """
Point(1) = {0, 0, 0};
line[] = Extrude {1, 0, 0} { Point{1}; Layers{2}; };
face[] = Extrude {0, 1, 0} { Curve{line[1]}; Layers{3}; Recombine; };
body[] = Extrude {0, 0, 1} { Surface{face[1]}; Layers{4}; Recombine; };
"""
TRANSFINITE = """
SetFactory("OpenCASCADE");
Box(1) = {0, 0, 0, 1, 2, 3};
Transfinite Curve{:} = 4;
Transfinite Surface{:};
Recombine Surface{:};
Transfinite Volume{:};
"""
RADIUS = 0.3
HOLE = f"""
SetFactory("OpenCASCADE");
Box(1) = {{0, 0, 0, 1, 1, 1}};
Cylinder(2) = {{0.5, 0.5, 0, 0, 0, 1, {RADIUS}}};
BooleanDifference(3) = {{ Volume{{1}}; Delete; }}{{ Volume{{2}}; Delete; }};
"""
VOLUME_WITH_HOLE = 1 - math.pi * RADIUS**2


def draw(folder, name, text):
    """A file that gmsh makes of a script, by the ending of its name."""
    script = folder / "script.geo"
    script.write_text(text)
    subprocess.run([GMSH, script, "-0", "-o", folder / name, "-v", "1"], check=True, capture_output=True, timeout=100)
    assert (folder / name).stat().st_size > 1000
    return folder / name


def run(poisson, text, *sets):
    poisson("run", poisson.write(text), "--output", "out", "--overwrite", "--quiet", "--backend", "cpu", *[f"--set={s}" for s in sets])
    return poisson.record()


def of_type(record, name):
    """The sum of quantities such as volume.1, volume.2."""
    return sum(value for key, value in record["quantities"].items() if key.startswith(name + "."))


@needs_gmsh
@pytest.mark.parametrize("order", [1, 2])
def test_a_linear_field_on_a_box_is_exact(poisson, order):
    poisson.write(BOX_WITH_NAMES, "part.geo")
    record = run(poisson, LINEAR, f"problem.element.order={order}")
    assert record["mesh"]["cells"] > 20 and record["errors"]["linf"] < 1e-9
    quantities = record["quantities"]
    assert quantities["volume.block"] == pytest.approx(1, rel=1e-12)
    assert quantities["area.left"] == pytest.approx(1, rel=1e-12)
    assert quantities["flux.left"] == pytest.approx(1, rel=1e-9)  # du/dx = 1 through 2 x 0.5
    assert quantities["flux.right"] == pytest.approx(-1, rel=1e-9)
    assert of_type(record, "area") == pytest.approx(2 * (2 + 0.5 + 1), rel=1e-12)
    assert 0.05 <= record["mesh"]["quality"]["worst"] < record["mesh"]["quality"]["mean"] < 1


@needs_gmsh
@pytest.mark.parametrize("text,counts", [(BRICKS, (2, 3, 4)), (TRANSFINITE, (3, 3, 3))])
def test_bricks_stay_as_they_are_drawn(poisson, text, counts):
    poisson.write(text, "part.geo")
    record = run(poisson, LINEAR, "problem.mesh.size=auto")
    assert record["mesh"]["cells"] == math.prod(counts)
    assert record["mesh"]["vertices"] == math.prod(n + 1 for n in counts)
    assert record["mesh"]["quality"]["worst"] == pytest.approx(1, abs=1e-12)
    assert record["mesh"]["quality"]["mean"] == pytest.approx(1, abs=1e-12)
    assert record["errors"]["linf"] < 1e-12


@needs_gmsh
def test_size_is_that_of_the_cells_and_in_the_unit_of_the_problem(poisson):
    draw(poisson.directory, "part.step", BOX)
    h = {}
    for size in (0.2, 0.1):
        cells = run(poisson, LINEAR, "problem.mesh.file=part.step", f"problem.mesh.size={size}")["mesh"]["cells"]
        h[size] = (1 / cells) ** (1 / 3)  # the edge of a cube with a cell's volume
        assert 0.45 < h[size] / size < 1, h
    scaled = run(poisson, LINEAR, "problem.mesh={file: part.step, size: 0.2e-3, scale: 1e-3}")
    assert (1e-9 / scaled["mesh"]["cells"]) ** (1 / 3) == pytest.approx(1e-3 * h[0.2], rel=1e-12)
    assert scaled["mesh"]["extent"] == pytest.approx([1e-3, 2e-3, 0.5e-3])


@needs_gmsh
@pytest.mark.parametrize("name", ["part.step", "part.stp", "part.STEP", "part.brep"])
def test_a_part_with_a_hole(poisson, name):
    drawn = draw(poisson.directory, "part.brep" if name == "part.brep" else "drawn.step", HOLE)
    if name != "part.brep":
        drawn.rename(poisson.directory / name)
    errors = []
    for size in (0.1, 0.05) if name in ("part.step", "part.brep") else (0.1,):  # other endings are names of the same formats
        record = run(poisson, LINEAR, f"problem.mesh.file={name}", f"problem.mesh.size={size}",
                     'problem.mesh.boundaries=[{name: hole, where: "(x - 0.5)^2 + (y - 0.5)^2 < 0.31^2 && z > 0.001 && z < 0.999"}]')
        assert record["errors"]["linf"] < 1e-9
        errors.append(abs(of_type(record, "volume") - VOLUME_WITH_HOLE))
        assert record["quantities"]["area.hole"] == pytest.approx(2 * math.pi * RADIUS, rel=0.03)
        # Every face of the drawing has its number as its id: six sides and the hole, which has a name here.
        assert len(record["mesh"]["boundary_ids"]) == 7 and record["mesh"]["material_ids"] == [1]
        sides = sorted(round(value, 6) for key, value in record["quantities"].items() if re.fullmatch(r"area\.\d+", key))
        assert sides[2:] == [1, 1, 1, 1]
    assert errors[0] < 0.01 and (len(errors) == 1 or errors[1] < 0.4 * errors[0]), errors


@needs_gmsh
def test_cells_of_order_2_follow_the_hole(poisson):
    draw(poisson.directory, "part.step", HOLE)

    def error(size, *sets):
        record = run(poisson, LINEAR, "problem.mesh.file=part.step", f"problem.mesh.size={size}", *sets)
        return abs(of_type(record, "volume") - VOLUME_WITH_HOLE)

    straight = [error(size) for size in (0.1, 0.05)]
    curved = [error(size, "problem.mesh.shape_order=2") for size in (0.1, 0.05)]
    assert straight[0] / straight[1] < 6 < 8 < curved[0] / curved[1], (straight, curved)
    assert curved[0] < 0.01 * straight[0]
    # Elements of order 2 have such cells unless they are asked not to.
    assert error(0.1, "problem.element.order=2") == pytest.approx(curved[0], rel=1e-6)
    assert error(0.1, "problem.element.order=2", "problem.mesh.shape_order=1") == pytest.approx(straight[0], rel=1e-6)


@needs_gmsh
def test_parts_that_touch_are_joined(poisson):
    draw(poisson.directory, "part.step", BOX + "Box(2) = {1, 0, 0, 1, 2, 0.5};\n")
    record = run(poisson, NO_FILES + """
problem:
  mesh: {file: part.step, size: 0.3, boundaries: [{name: left, where: "x < 1e-6"}, {name: right, where: "x > 2 - 1e-6"}]}
  coefficient: {1: "1", 2: "3"}
  boundary:
    - {names: [left], type: dirichlet, value: "0"}
    - {names: [right], type: dirichlet, value: "1"}
    - {ids: all, type: neumann, value: "0"}
""")
    assert record["quantities"]["flux.right"] == pytest.approx(-1 / (1 + 1 / 3), rel=1e-9)  # two slabs in series, area 1
    assert record["mesh"]["material_ids"] == [1, 2]


@needs_gmsh
def test_names_by_a_script_that_merges_a_part(poisson):
    draw(poisson.directory, "my part.step", HOLE)
    poisson.write('Merge "my part.step";\nPhysical Volume("steel") = {1};\nPhysical Surface("hole") = {7};\n', "named part.geo")
    record = run(poisson, LINEAR, "problem.mesh={file: named part.geo, size: 0.2}")
    assert record["quantities"]["area.hole"] == pytest.approx(2 * math.pi * RADIUS, rel=0.03)
    assert record["mesh"]["material_names"] == {"1": "steel"}


@needs_gmsh
def test_a_script_cannot_undo_what_is_asked_for(poisson):
    poisson.write(BOX_WITH_NAMES + "Mesh.SubdivisionAlgorithm = 0;\nMesh.RecombineAll = 1;\nMesh.Recombine3DAll = 1;\nMesh.ElementOrder = 3;\n"
                  "Mesh.Format = 10;\nMesh.SaveAll = 1;\nMesh.Binary = 0;\n", "part.geo")
    record = run(poisson, LINEAR)
    assert record["errors"]["linf"] < 1e-9 and record["quantities"]["volume.block"] == pytest.approx(1, rel=1e-12)


@needs_gmsh
def test_cells_of_bad_shape_are_made_anew_smaller(poisson):
    poisson.write('SetFactory("OpenCASCADE");\nBox(1) = {0, 0, 0, 1, 1, 1};\nSphere(2) = {0.5, 0.5, 0.5, 0.3};\n'
                  "BooleanFragments{ Volume{1}; Delete; }{ Volume{2}; Delete; }\n", "part.geo")
    configuration = poisson.write(LINEAR)
    done = poisson("check", configuration, "--set", "problem.mesh.size=0.16")
    note = re.search(r"note: .*part.geo.*cells of (0\.5|0\.25) times the size, because .* has the scaled Jacobian (-?[\d.e-]+), at \(", done.stdout)
    assert note and float(note[2]) < 0.05, done.stdout
    worst = re.search(r"scaled Jacobian .* in the mean, ([\d.]+) at worst", done.stdout)
    assert worst and float(worst[1]) >= 0.05, done.stdout


def write_sheared(path, angle):
    """Two cells: a cube, and beside it one whose upper face is moved so far that upright edges make this angle with the bottom."""
    shift = 1 / math.tan(angle)
    points = [(x, y, 0) for y in (0, 1) for x in (0, 1)] + [(x, y, 1) for y in (0, 1) for x in (0, 1)]
    points += [(x, y + 5, 0) for y in (0, 1) for x in (0, 1)] + [(x + shift, y + 5, 1) for y in (0, 1) for x in (0, 1)]
    order = [0, 1, 3, 2, 4, 5, 7, 6]
    path.write_text("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n16\n" +
                    "".join(f"{i + 1} {x} {y} {z}\n" for i, (x, y, z) in enumerate(points)) + "$EndNodes\n$Elements\n2\n" +
                    "".join(f"{k + 1} 5 2 1 1 {' '.join(str(8 * k + v + 1) for v in order)}\n" for k in range(2)) + "$EndElements\n")


@pytest.mark.parametrize("degrees", [60, 30, 1])
def test_the_scaled_jacobian_of_any_mesh_file_is_told(poisson, degrees):
    angle = math.radians(degrees)
    write_sheared(poisson.directory / "cells.msh", angle)
    record = run(poisson, LINEAR, "problem.mesh={file: cells.msh}")
    quality = record["mesh"]["quality"]
    assert quality["worst"] == pytest.approx(math.sin(angle), rel=1e-12)
    assert quality["mean"] == pytest.approx((1 + math.sin(angle)) / 2, rel=1e-12)
    assert quality["worst_at"] == pytest.approx([0.5 + 0.5 / math.tan(angle), 5.5, 0.5])
    done = poisson("check", poisson.write(LINEAR), "--set", "problem.mesh={file: cells.msh}")
    assert "scaled Jacobian" in done.stdout
    assert "quality" not in run(poisson, LINEAR, "problem.mesh={cells: [2, 2, 2]}")["mesh"]


@needs_gmsh
def test_a_sweep_over_the_size(poisson):
    poisson.write(BOX_WITH_NAMES, "part.geo")
    poisson("sweep", poisson.write(LINEAR + "sweep: {problem.mesh.size: [0.2, 0.1]}\n"), "--output", "out", "--quiet", "--backend", "cpu")
    cases = json.loads((poisson.directory / "out/sweep.json").read_text())
    cells = [json.loads(path.read_text())["mesh"]["cells"] for path in sorted((poisson.directory / "out").glob("cases/*/result.json"))]
    assert len(cells) == 2 and 4 < cells[1] / cells[0] < 16, (cells, cases)
    assert "two cases have the same mesh" not in json.dumps(cases)


def stand_in(poisson, script, name="gmsh"):
    """The environment with a program gmsh that does as the script says: of bash, unless it says more."""
    folder = poisson.directory / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(script if script.startswith("#!") else "#!/bin/bash\n" + script)
    program.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


@needs_gmsh
@pytest.mark.parametrize("ranks,refinements", [(1, 0), pytest.param(2, 0, marks=needs_mpi), pytest.param(2, 2, marks=needs_mpi)])
def test_gmsh_runs_once(poisson, ranks, refinements):
    """Also on ranks, which have the names of the mesh, and the same result."""
    poisson.write(BOX_WITH_NAMES, "part.geo")
    text = LINEAR.replace('{ids: all, type: dirichlet, value: "x + 2*y - 3*z"}',
                          '{names: [left], type: dirichlet, value: "0"}, {names: [right], type: neumann, value: "2"}, '
                          '{ids: all, type: neumann, value: "0"}').replace('exact: "x + 2*y - 3*z"', 'exact: "2*x"')
    calls = poisson.directory / "calls"
    environment = stand_in(poisson, f'echo call >> "{calls}"\nexec {GMSH} "$@"\n')
    words = ["run", poisson.write(text), "--output", "out", "--quiet", "--backend", "cpu", f"--set=problem.mesh.refinements={refinements}"]
    command = ranks_command(ranks, *words) if ranks > 1 else poisson.command(*words)
    at = command.index(EXECUTABLE)
    command[at:at] = ["env", f"PATH={environment['PATH']}"]  # mpirun puts its own folder first
    subprocess.run(command, cwd=poisson.directory, check=True, timeout=300, stdin=subprocess.DEVNULL)
    record = poisson.record()
    assert record["errors"]["linf"] < 1e-9 and record["ranks"] == ranks
    assert record["quantities"]["flux.right"] == pytest.approx(-2, rel=1e-9)
    assert calls.read_text().count("call") == 1
    poisson("check", poisson.write(text), env=environment)
    assert calls.read_text().count("call") == 2


def test_without_gmsh_its_package_is_named(poisson):
    poisson.write(BOX, "part.geo")
    configuration = poisson.write(LINEAR)
    for path in ("", str(poisson.directory)):
        for command in (["check", configuration], ["run", configuration, "--output", "out", "--overwrite"]):
            done = poisson(*command, code=3, env={k: v for k, v in os.environ.items() if k != "PATH"} | {"PATH": path})
            assert "no program 'gmsh' in PATH" in done.stderr and "package gmsh" in done.stderr, done.stderr
    poisson("check", configuration, "--set", "problem.mesh={cells: [2, 2, 2]}", env=os.environ | {"PATH": ""})


INVERTED = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
8
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
5 0 0 1
6 1 0 1
7 0.1 0.1 -0.5
8 0 1 1
$EndNodes
$Elements
1
1 5 2 1 1 1 2 3 4 5 6 7 8
$EndElements
"""
TETRAHEDRON = INVERTED.replace("1 5 2 1 1 1 2 3 4 5 6 7 8", "1 4 2 1 1 1 2 4 5")


@pytest.mark.parametrize("script,message", [
    ("exit 0", "gmsh has made no mesh"),
    ("echo 'Error   : no volume'; exit 0", "gmsh has made no mesh.*It says: Error : no volume"),
    ("echo nonsense >> /proc/self/fd/4", "gmsh has made what is no mesh of hexahedra: .*not a Gmsh file"),
    (f"cat >> /proc/self/fd/4 <<'E'\n{INVERTED}E", r"the worst of 1 cells has the scaled Jacobian -[\d.]+, at \(0\.\d+, .*, with cells of 0.25 times the size too.*0.05"),
    (f"cat >> /proc/self/fd/4 <<'E'\n{TETRAHEDRON}E", "4-node tetrahedron"),
    ("printf '\\033[31mError   : first\\033[0m\\n\\tsecond\\n' >&2; exit 3", r"exit code 3\)\. It says: Error : first second"),
    ("kill -SEGV $$", "gmsh was ended by signal 11"),
    ("#!/no/such/interpreter\n", "cannot be started")])
def test_a_gmsh_that_fails(poisson, script, message):
    poisson.write(BOX, "part.geo")
    done = poisson("check", poisson.write(LINEAR), code=3 if "interpreter" in script else 1, env=stand_in(poisson, script))
    assert re.search(message, done.stderr), done.stderr


def processes_with(text):
    found = []
    for folder in os.listdir("/proc"):
        try:
            if folder.isdigit() and text.encode() in open(f"/proc/{folder}/cmdline", "rb").read():
                found.append(int(folder))
        except OSError:
            pass
    return found


def wait_until(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_gmsh_has_a_limit_of_time(poisson):
    """It is ended with what it has started."""
    poisson.write(BOX, "part.geo")
    marked = 1000 + os.getpid() / 1e7
    done = poisson("check", poisson.write(LINEAR), "--set", "problem.mesh.time_limit=0.5", code=1, env=stand_in(poisson, f"echo busy\nsleep {marked}; exit 0"))
    assert "gmsh was not ready after 0.5 s (problem.mesh.time_limit)" in done.stderr and "It says: busy" in done.stderr, done.stderr
    assert wait_until(lambda: not processes_with(f"sleep\0{marked}"), 10)


@pytest.mark.parametrize("sent,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_gmsh_ends_with_the_program(poisson, sent, code):
    poisson.write(BOX, "part.geo")
    marked = 2000 + os.getpid() / 1e7
    begun = poisson.directory / "begun"
    process = subprocess.Popen(poisson.command("run", poisson.write(LINEAR), "--output", "out", "--quiet"), cwd=poisson.directory,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=stand_in(poisson, f'touch "{begun}"\nexec sleep {marked}\n'))
    try:
        assert wait_until(lambda: begun.exists() and processes_with(f"sleep\0{marked}"))
        process.send_signal(sent)
        assert process.wait(60) == code
        assert wait_until(lambda: not processes_with(f"sleep\0{marked}"), 10)
    finally:
        process.kill()
        process.wait()


@needs_gmsh
def test_no_files_are_left(poisson, monkeypatch):
    (poisson.directory / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(poisson.directory / "tmp"))
    poisson.write(BOX, "part.geo")
    poisson("check", poisson.write(LINEAR))
    assert sorted(p.name for p in poisson.directory.iterdir()) == ["case.yaml", "part.geo", "tmp"]
    assert not list((poisson.directory / "tmp").iterdir())


@needs_gmsh
@pytest.mark.parametrize("name,content,message", [
    ("part.geo", "Point(1) = {0, 0\n", "syntax error"),
    ("part.geo", "", "makes no hexahedra|made no mesh"),
    ("part.geo", "Point(1) = {0, 0, 0};\n", "makes no hexahedra|made no mesh"),
    ("part.geo", 'SetFactory("OpenCASCADE");\nRectangle(1) = {0, 0, 0, 1, 1};\n', "no mesh of hexahedra: .*triangle|no hexahedra"),
    ("part.geo", "Exit;\n" + BOX, "has made no mesh"),
    ("part.step", "ISO-10303-21;\nHEADER;\n", "gmsh makes no mesh of it|made no mesh"),
    ("part.step", "", "gmsh makes no mesh of it|made no mesh"),
    ("part.brep", "nonsense", "gmsh makes no mesh of it|made no mesh"),
    ("part.step.gz", "x", "compressed drawings are not read"),
    ('a"b.geo', BOX, "rename it")])
def test_damaged_drawings(poisson, name, content, message):
    poisson.write(content, name)
    done = poisson("check", poisson.write(LINEAR.replace("part.geo", f"'{name}'")), code=1)
    assert re.search(message, done.stderr), done.stderr
    assert "case.yaml:" in done.stderr


@needs_gmsh
def test_steps_that_end_too_early(poisson):
    """Whatever gmsh makes of half a file: an error, or a mesh of good cells."""
    whole = draw(poisson.directory, "whole.step", HOLE).read_text()
    for part in (0.3, 0.6, 0.9, 0.99):
        poisson.write(whole[:int(part * len(whole))], "part.step")
        done = poisson("check", poisson.write(LINEAR.replace("part.geo", "part.step")), code=(0, 1))
        assert "mesh file" in done.stderr or re.search(r"mean, 0\.\d+ at worst", done.stdout), (done.stdout, done.stderr)


def test_files_that_are_not_there(poisson):
    (poisson.directory / "folder.step").mkdir()
    os.mkfifo(poisson.directory / "pipe.geo")
    for name, message in (("missing.step", "there is no such mesh file"), ("folder.step", "is a directory"), ("pipe.geo", "not a regular file")):
        done = poisson("check", poisson.write(LINEAR.replace("part.geo", name)), code=1)
        assert message in done.stderr, done.stderr


@pytest.mark.parametrize("command", ['SystemCall "touch done";', 'NonBlockingSystemCall "touch done";', 'Printf("x (%g)", 1) > "done";', 'Print "done.png";',
                                     'Save "done.msh";', 'CreateDir "done";', 'Solver.Executable0 = "touch";', 'Include "other.inc";',
                                     'Merge Str("a", ".geo");', 'Merge "other.pos";', 'a = 1; /* */ SystemCall Str("touch done"); // x'])
def test_scripts_that_start_programs_or_write_files_are_refused(poisson, command):
    for name in ("other.inc", "other.pos"):
        poisson.write('// fine\nSystemCall "touch done";\n', name)
    poisson.write(f"{BOX}\n{command}\n", "part.geo")
    done = poisson("check", poisson.write(LINEAR), code=1)
    place = re.search(r"other\.\w+", command)[0] + "', line 2" if "other" in command else "part.geo', line 4"
    assert place in done.stderr and "problem.mesh.allow_commands" in done.stderr, done.stderr
    assert not (poisson.directory / "done").exists()


@needs_gmsh
def test_scripts_with_commands_that_are_allowed(poisson):
    poisson.write(BOX + f'// SystemCall "touch wrong";\nPrintf("SystemCall > %g", 1);\n', "part.geo")
    poisson("check", poisson.write(LINEAR))
    poisson.write(BOX + f'SystemCall "touch {poisson.directory}/done";\n', "part.geo")
    poisson("check", poisson.write(LINEAR), code=1)
    assert not (poisson.directory / "done").exists()
    poisson("check", poisson.write(LINEAR), "--set", "problem.mesh.allow_commands=true")
    assert (poisson.directory / "done").exists()


def test_keys_of_drawings_belong_to_drawings(poisson):
    for key in ("size=0.1", "shape_order=2", "time_limit=5", "allow_commands=true"):
        done = poisson("check", poisson.write("problem: {mesh: {cells: [2, 2, 2]}, boundary: [{ids: all, type: dirichlet, value: '0'}]}"),
                       "--set", f"problem.mesh.{key}", code=1)
        assert "with a drawing " in done.stderr and "as problem.mesh.file" in done.stderr, done.stderr
    done = poisson("check", poisson.write(LINEAR), "--set", "problem.mesh.size=-1", code=1)
    assert "problem.mesh.size" in done.stderr
