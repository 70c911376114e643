"""Each wrong input: one clear message, the right exit code, nothing lost, no partial file."""

import os
import pathlib
import resource
import subprocess

import pytest
from conftest import CUBE

MESHES = pathlib.Path(os.environ.get("POISSON_REAL_DATA", "/nonexistent")) / "meshes"


def fails(poisson, sets=(), code=1, text=CUBE, words=(), extra=()):
    config = poisson.write(text, "bad.yaml")
    options = [w for s in sets for w in ("--set", s)]
    done = poisson("run", config, "--output", "out", *options, *words, code=code)
    assert not (poisson.directory / "out").exists() or not list((poisson.directory / "out").iterdir())
    for word in extra:
        assert word in done.stderr, f"{word!r} not in {done.stderr}"
    return done.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("", ["bad.yaml"]),
        (b"\x00\x01\x02\xff\xfe" * 100, ["bad.yaml"]),
        ("problem: [unclosed", ["bad.yaml:1"]),
        ("just a string", ["bad.yaml"]),
        ("problem:\n\tmesh: {}", ["bad.yaml:2"]),
        ("problem: {mesh: {cells: [4, 4, 4]}, mesh: {}}", ["mesh"]),
        ("problem: " + "[" * 100000, ["bad.yaml"]),
        (CUBE + "solver: {tolerence: 1e-8}", ["bad.yaml:", "tolerence", "tolerance"]),
        (CUBE + "solvr: {tolerance: 1e-8}", ["solvr", "solver"]),
        (CUBE + "solver: {tolerance: small}", ["solver.tolerance", "small"]),
        (CUBE + "solver: {tolerance: .nan}", ["solver.tolerance"]),
        (CUBE + "solver: {tolerance: -1}", ["solver.tolerance", "-1"]),
        (CUBE + "solver: {max_iterations: 1e100}", ["solver.max_iterations"]),
        (CUBE + "solver: {method: gauss}", ["solver.method", "cg"]),
        (CUBE + "matrix: {format: half_csd}", ["matrix.format", "half_cds"]),
        (CUBE + "backend: gpu", ["backend", "cuda"]),
        (CUBE + "output: {vtk: {compression: max}}", ["output.vtk.compression", "fast"]),
        ("problem: {mesh: {cells: [4, 4, 4]}}", ["problem.boundary"]),
    ],
)
def test_configuration(poisson, text, words):
    fails(poisson, text=text, extra=words)


@pytest.mark.parametrize(
    "sets, words",
    [
        (["problem.mesh.cells=[-4, 4, 4]"], ["problem.mesh.cells", "-4"]),
        (["problem.mesh.cells=[0, 4, 4]"], ["problem.mesh.cells"]),
        (["problem.mesh.cells=[4, 4]"], ["problem.mesh.cells"]),
        (["problem.mesh.cells=[1.5, 4, 4]"], ["problem.mesh.cells", "1.5"]),
        (["problem.mesh.cells=[1000000, 1000000, 1000000]"], ["problem.mesh"]),
        (["problem.mesh.extent=[1, 0, 1]"], ["problem.mesh.extent"]),
        (["problem.mesh.extent=[1, .inf, 1]"], ["problem.mesh.extent"]),
        (["problem.mesh.refinements=40"], ["problem.mesh.refinements", "40"]),
        (["problem.mesh={generator: hyper_bal}"], ["hyper_ball"]),
        (["problem.mesh={generator: hyper_ball, arguments: 'x : y'}"], ["problem.mesh.arguments"]),
        (["problem.mesh={file: missing.msh}"], ["problem.mesh.file", "missing.msh"]),
        (["problem.mesh={file: .}"], ["problem.mesh.file", "directory"]),
        (["problem.element.order=0"], ["problem.element.order"]),
        (["problem.source=sin(q)"], ["problem.source", "q", "^"]),
        (["problem.source='sin(x'"], ["problem.source", "^"]),
        (["problem.source='1/(x-x)'"], ["problem.source"]),
        (["problem.coefficient=x-0.5"], ["problem.coefficient", "material"]),
        (["problem.coefficient=0"], ["problem.coefficient"]),
        (["problem.boundary[0].ids=[0, 1, 2]"], ["problem.boundary", "3, 4, 5"]),
        (["problem.boundary[0].ids=[0, 1, 2, 3, 4, 5, 6]"], ["problem.boundary[0].ids", "6"]),
        (["problem.boundary[0].type=dirichlett"], ["dirichlet"]),
        (["problem.boundary[0].value=log(-1)"], ["problem.boundary[0].value"]),
        (["nonsense"], ["nonsense"]),
        (["solver.tolerence=1"], ["solver.tolerence", "tolerance"]),
    ],
)
def test_values(poisson, sets, words):
    fails(poisson, sets, extra=words)


BOUNDARY = '\n  boundary: [{ids: all, type: dirichlet, value: "0"}]\n'


@pytest.mark.parametrize("text", [
    "problem:\n  source: x > 0.5 ? 1 : 0" + BOUNDARY,
    "problem:\n  source: x > 0.5 ? 1: 0" + BOUNDARY,
    "problem:\n  source: x > 0.5 ?  # in words\n    1 : 0" + BOUNDARY,
    "problem:\n  source: {x > 0.5: 1}" + BOUNDARY,
    "problem:\n  source: ? 1 : 2" + BOUNDARY,
    "problem:\n  source: *x" + BOUNDARY,
    "problem:\n  coefficient: [x > 0.5 ? 1 : 2, 1, 1]" + BOUNDARY,
    "problem:\n  boundary:\n    - {ids: all, type: dirichlet, value: x > 0.5 ? 1 : 0}",
    "problem:\n  boundary:\n    - {ids: all, type: dirichlet, value: x>0.5?1:0}",
    "problem:\n  boundary:\n    - {ids: all, type: dirichlet, value: min(x, y)}",
])
def test_expressions_without_quotes(poisson, text):
    fails(poisson, text=text, extra=["bad.yaml:", "needs quotes"])


def test_expression_without_quotes_on_the_command_line(poisson):
    fails(poisson, ["problem.source=x > 0.5 ? 1 : 0"], extra=["--set", "needs quotes", '\'problem.source="x > 0.5 ? 1 : 0"\''])
    config = poisson.write(CUBE)
    poisson("run", config, "--output", "out", "--set", 'problem.source="x > 0.5 ? 1 : 0"', "--quiet")


def test_unknown_name_lists_the_known_ones(poisson):
    for source in ("sinn(x)", "foo(x)"):
        fails(poisson, [f"problem.source={source}"], extra=["known are", "erf", "atan2(a, b)", "pi", "if("] if source[0] == "f" else ["did you mean 'sin'", "erf"])


def test_names_of_a_kind_are_listed_together(poisson):
    text = fails(poisson, ["output.quantities={mine: 2 * fluxx}"], extra=["is not known", "flux.0, ..., flux.5", "max"])
    assert "flux.3" not in text and len(text) < 1500
    assert "flux.0" not in fails(poisson, ["output.quantities={mine: probe(1)}"], extra=["known are", "sin"])


def test_place_in_the_file_for_what_only_the_mesh_knows(poisson):
    text = fails(poisson, text=CUBE.replace("ids: all", "ids: [0, 1, 2, 3, 4, 5, 9]"))
    assert "bad.yaml:6:" in text and "problem.boundary[0].ids" in text


@pytest.mark.parametrize("words", [[], ["frobnicate"], ["run"], ["run", "a.yaml", "b.yaml"], ["run", "missing.yaml"], ["run", "."],
                                   ["run", "case.yaml", "--unknown"], ["run", "case.yaml", "--threads", "0"], ["run", "case.yaml", "--threads", "many"],
                                   ["run", "case.yaml", "--backend", "gpu"], ["info", "extra"], ["check"], ["run", "case.yaml", "--ove"]])
def test_usage(poisson, words):
    poisson.write(CUBE)
    done = subprocess.run(poisson.command(*words), cwd=poisson.directory, text=True, capture_output=True)
    assert done.returncode == 1 and done.stderr and "terminate" not in done.stderr


def test_no_device(poisson):
    config = poisson.write(CUBE)
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    done = poisson("run", config, "--output", "out", "--backend", "cuda", code=3, env=environment)
    assert "cuda" in done.stderr and not (poisson.directory / "out").exists()


def test_output_below_a_file(poisson):
    config = poisson.write(CUBE)
    poisson.write("not a directory", "file")
    assert "file" in poisson("run", config, "--output", "file/out", code=3).stderr
    assert "'file' is there and is not a directory" in poisson("run", config, "--output", "file", code=1).stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_output_not_writable(poisson):
    config = poisson.write(CUBE)
    (poisson.directory / "locked").mkdir(mode=0o555)
    poisson("run", config, "--output", "locked/out", code=3)


def test_output_on_a_read_only_system(poisson):
    config = poisson.write(CUBE)
    assert "/proc/poisson" in poisson("run", config, "--output", "/proc/poisson", code=3).stderr


@pytest.mark.parametrize("format, name", [("auto", "solution.vti"), ("hdf", "solution.hdf")])
def test_file_size_limit_stands_for_a_full_disk(poisson, format, name):
    """Every write beyond 64 KiB fails: the small files are there, the large ones are not, not even in part."""
    config = poisson.write(CUBE.replace("[8, 8, 8]", "[24, 24, 24]"))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    done = poisson("run", config, "--output", "out", "--set", "output.picture=false", "--set",
                   f"output.vtk={{compression: none, format: {format}}}", code=3, preexec_fn=limit)
    assert name in done.stderr and "HDF5" not in done.stderr and len(done.stderr.splitlines()) == 1
    files = set(os.listdir(poisson.directory / "out"))
    assert name not in files and "result.json" in files
    assert set(poisson.record()["files"]) == files
    assert "iterations" in done.stdout  # what was found is told all the same


def test_full_disk(poisson):
    disk = poisson.directory / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], capture_output=True).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        config = poisson.write(CUBE.replace("[8, 8, 8]", "[24, 24, 24]"))
        done = poisson("run", config, "--output", "disk/out", code=3)
        assert "solution.vti" in done.stderr or "No space" in done.stderr
        assert "iterations" in done.stdout
        left = os.listdir(disk / "out") if (disk / "out").exists() else []
        assert "solution.vti" not in left and not [f for f in left if f.startswith(".") or "tmp" in f]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_too_little_memory(poisson):
    """10^9 cells fit the 32-bit numbering and no ordinary machine."""
    config = poisson.write(CUBE)
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 10**12:
        pytest.skip("this machine might do it")
    done = poisson("run", config, "--output", "out", "--set", "problem.mesh.cells=[1000, 1000, 1000]", code=3, timeout=60)
    assert "memory" in done.stderr and not (poisson.directory / "out").exists()


def test_too_many_diagonals_are_refused_with_figures(poisson):
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_ball, refinements: 1}
          source: "1"
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        matrix: {format: half_cds}
        """)
    text = poisson("run", config, "--output", "out", code=1).stderr
    assert "matrix.format" in text and "csr" in text and "diagonals" in text


@pytest.mark.skipif("POISSON_REAL_DATA" not in os.environ, reason="POISSON_REAL_DATA is not set")
@pytest.mark.parametrize("name, words", [("five-3d.e", ["Exodus"]), ("Cube_With_Sidesets.e", ["Exodus"])])
def test_meshes_that_cannot_be_read(poisson, name, words):
    fails(poisson, [f"problem.mesh={{file: '{MESHES / name}'}}"], extra=["problem.mesh.file", *words])


@pytest.mark.skipif("POISSON_REAL_DATA" not in os.environ, reason="POISSON_REAL_DATA is not set")
@pytest.mark.parametrize("name, cells", [("sphere_r6.msh", 4625), ("grid_in_msh_01.3da.v41.msh", 200), ("3d_test_abaqus.inp", 375),
                                         ("3d_test_cube_two_materials.inp", 8), ("grid_in_vtk_3d_04.vtk", 512)])
def test_real_meshes(poisson, name, cells):
    config = poisson.write(f"""
        problem:
          mesh: {{file: '{MESHES / name}'}}
          source: "1"
          boundary: [{{ids: all, type: dirichlet, value: "0"}}]
        output: {{picture: false}}
        """)
    poisson("run", config, "--output", "out")
    assert poisson.record()["mesh"]["cells"] == cells
