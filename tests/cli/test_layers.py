"""The layer rules of docs/architecture.md, read off the includes."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import CUBE, EXECUTABLE, ROOT

FOLDER = pathlib.Path(EXECUTABLE).parent
LAYERS = {"app": {"app", "assembly", "output", "gpu"}, "assembly": {"assembly", "gpu/core"}, "output": {"output", "gpu/core"}, "gpu": {"gpu"}}
OWNERS = {r"deal\.II/": {"assembly/dealii"}, r"vtk": {"output/vtk"}, r"netcdf": {"assembly/dealii"}, r"yaml-cpp/": {"app"}, r"boost/program_options": {"app"},
          r"(cuda|cublas|cusparse|cusolver|cooperative_groups|cub/)": {"gpu/kernels/cuda", "gpu/peers/cuda"},
          r"mpi\.h": {"app/mpi"}, r"cairo": {"output/picture"}, r"(hdf5|H5)": {"output/vtk"}}
# Rooms of a layer, lowest first: each may include itself and those before it.
ROOMS = {"assembly": ["text.hpp", "parallel.hpp", "expression", "image", "problem.hpp", "mesh", "space", "dealii", "system", "discretization.hpp", "discretization.cpp"],
         "gpu": ["core", "kernels", "exchange", "formats", "elements", "preconditioners", "solvers", "spectral", "peers", "examples"],
         "app": ["mpi", "io", "config", "analysis", "launch", "domain", "plan", "results", "run", "sweep", "bench", "cli"]}
NAMESPACES = {"gpu": "poisson", "assembly": "poisson::assembly", "output": "poisson::output", "app": "poisson::app"}


def sources(layer):
    return [path for path in (ROOT / layer).rglob("*") if path.suffix in (".hpp", ".cpp", ".cu", ".cuh")]


def includes():
    found = []
    for layer in LAYERS:
        for path in sources(layer):
            name = path.relative_to(ROOT).as_posix()
            for line in path.read_text().splitlines():
                if m := re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line):
                    found.append((name, m[1], m[2]))
    return found


def test_project_includes_follow_the_layers():
    bad = []
    for name, kind, target in includes():
        layer = name.split("/")[0]
        if kind == '"' and not any(target.startswith(allowed + "/") for allowed in LAYERS[layer]):
            bad.append(f"{name} includes {target}")
    assert not bad, bad


@pytest.mark.parametrize("layer", ROOMS)
def test_rooms_of_a_layer_go_one_way(layer):
    rooms = ROOMS[layer]
    bad, seen = [], set()
    for name, kind, target in includes():
        if kind != '"' or not name.startswith(layer + "/") or not target.startswith(layer + "/"):
            continue
        here, there = name.split("/")[1], target.split("/")[1]
        seen |= {here, there}
        if rooms.index(there) > rooms.index(here):
            bad.append(f"{name} includes {target}")
    assert not bad, bad
    assert seen == set(rooms)


# One rank is a team of one: what is_alone() decides, has to be decided twice. These files ask so often, and why:
ASKS_FOR_OTHER_RANKS = {
    "gpu/core/communicator.hpp": 5,  # what it is, and messages that alone are copies
    "app/launch/team.hpp": 6,  # together(body) is body(); " on 3 ranks"
    "app/launch/same_configuration.cpp": 1,  # nobody to compare with, for every case of a sweep
    "app/domain/domain.cpp": 1,  # one Discretization for cells around and own cells
    "app/run/run_device.cpp": 1,  # devices connect beside the mesh; a rank alone does not wait for its own
    "app/run/shared_matrix.cpp": 1,  # a Matrix, or the part of one
    "app/run/solves_on_ranks.cpp": 1,  # nobody to solve with
    "app/run/system_solver.cpp": 5,  # what the solver is told of the matrix; bandwidth is measured on one rank
    "gpu/kernels/backends.cpp": 1,  # NCCL is not loaded for one rank
    "gpu/exchange/halo.cpp": 1,  # images of own nodes are copies, which wait for nobody
    "gpu/exchange/whole_vector.cpp": 1,  # the same
    "gpu/preconditioners/lanczos.cpp": 1,  # a sum that need not leave the device
    "gpu/solvers/gathered_sum.hpp": 2,  # the same
    "gpu/solvers/solver.cpp": 4,  # CUDA graphs; where levels begin
    "app/bench/matrices.cpp": 1,  # levels from a box, or from blocks of it
    "app/bench/session.cpp": 1}  # other libraries are measured on one rank only


def test_few_places_ask_whether_there_are_other_ranks():
    found = {path.relative_to(ROOT).as_posix(): len(re.findall(r"\bis_alone\(\)", path.read_text())) for layer in LAYERS for path in sources(layer)}
    assert {name: count for name, count in found.items() if count} == ASKS_FOR_OTHER_RANKS


# Two layers that define one name in the same namespace would be undefined behaviour that the order of linking decides.
def test_every_layer_has_its_namespace():
    bad = []
    for layer, expected in NAMESPACES.items():
        for path in sources(layer):
            for name in re.findall(r"^namespace (poisson[\w:]*) {", path.read_text(), re.MULTILINE):
                others = [n for n in NAMESPACES.values() if n != "poisson" and n != expected]
                if not (name + "::").startswith(expected + "::") or any((name + "::").startswith(n + "::") for n in others):
                    bad.append(f"{path.relative_to(ROOT)}: {name}")
    assert not bad, bad


def test_libraries_stay_with_their_owners():
    bad = []
    for name, kind, target in includes():
        for pattern, owners in OWNERS.items():
            if kind == "<" and re.match(pattern, target) and not any(name.startswith(owner + "/") for owner in owners):
                bad.append(f"{name} includes {target}")
    assert not bad, bad


def test_hdf5_is_the_serial_one():
    """deal.II's has MPI and the same functions; which one a library calls, the order of linking decides."""
    try:
        symbols = subprocess.run(["readelf", "--wide", "--dyn-syms", FOLDER / "libpoisson_vtk.so"], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("no readelf")
    used = re.findall(r" (H5D\w+)@(\w+)", symbols)
    assert used and all(version.startswith("HDF5_SERIAL") for _, version in used), used


NO_FILES = ("--set", "output={vtk: {enabled: false}, picture: false, report: false}")
# What is loaded only when it is needed: our libraries, and what they are for.
MODULES = {"libpoisson_dealii.so": r"deal_?ii|trilinos|netcdf", "libpoisson_vtk.so": r"libvtk|hdf5", "libpoisson_grids.so": r"libvtk", "libpoisson_image.so": r"libvtk", "libpoisson_cairo.so": r"cairo|X11|fontconfig",
           "libpoisson_lapack.so": r"blas|lapack|gfortran", "libpoisson_umfpack.so": r"umfpack|amd|cholmod|suitesparse|colamd|metis|blas|lapack|gfortran|quadmath", "libpoisson_mpi.so": r"libmpi|open-rte"}


def libraries(poisson, *words):
    """The libraries that a call of the program loads, now or later."""
    log = poisson.directory / "loaded"
    poisson(*words, env=os.environ | {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)})
    found = set()
    for path in poisson.directory.glob("loaded.*"):
        found |= {pathlib.Path(name).name for name in re.findall(r"calling init: (/\S+)", path.read_text())}
        path.unlink()
    assert any(name.startswith("libstdc++") for name in found), found
    return found


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("schema",), ("check", "case.yaml", *NO_FILES),
                                   ("run", "case.yaml", "--output", "out", "--backend", "cpu", *NO_FILES),
                                   ("run", "case.yaml", "--output", "out", "--backend", "cpu", "--set", "output={picture: false, vtk: {format: vtu, compression: best}}")],
                         ids=lambda words: words[0] if len(words) < 9 else "files")
def test_the_program_starts_with_few_libraries(poisson, words):
    """Loading all of them takes longer than solving a small box."""
    poisson.write(CUBE)
    found = libraries(poisson, *words)
    late = "|".join([*MODULES.values(), "libpoisson"])
    assert not [name for name in found if re.search(late, name)]
    cuda = {name for name in found if re.search(r"libcuda|libnv|libnccl", name)}  # `check` asks for a device
    assert len(found - cuda) <= 20, found


NEEDS = {"libpoisson_dealii.so": ("problem.mesh={generator: hyper_ball}",), "libpoisson_vtk.so": ("output.vtk={format: hdf}",),
         "libpoisson_cairo.so": ("output.picture=true",), "libpoisson_lapack.so": ("analysis.svd=[{of: operator}]",)}


def settings_that_need(module):
    return [word for setting in ("output={picture: false, report: false}", *NEEDS[module]) for word in ("--set", setting)]


@pytest.mark.parametrize("module", NEEDS)
def test_what_needs_a_library_loads_it(poisson, module):
    poisson.write(CUBE)
    found = libraries(poisson, "run", "case.yaml", "--output", "out", "--backend", "cpu", *settings_that_need(module))
    assert {name for name in found if name.startswith("libpoisson_")} == {module}
    assert any(re.search(MODULES[module], name) for name in found - {module})


def test_libraries_that_nobody_calls_are_not_loaded(poisson):
    unused = {path.name for path in (FOLDER / "libpoisson_dealii.unused").glob("*")}
    if not unused:
        pytest.skip("nothing stands in for libraries of this deal.II (tools/stand_ins)")
    poisson.write(CUBE)
    found = libraries(poisson, "run", "case.yaml", "--output", "out", "--backend", "cpu", *NO_FILES, "--set", "problem.mesh={generator: hyper_ball}")
    # A hundred more come with OpenCASCADE, Trilinos and gmsh.
    assert any("deal" in name and not name.startswith("libpoisson") for name in found)
    assert not [name for name in found - unused if re.match("lib(TK|petsc|X11|trilinos_(?!teuchos|kokkos))", name)], found


def test_vtk_comes_with_meshes_that_it_reads(poisson):
    """And with no others: of deal.II's generators and readers none needs it."""
    mesh = """# vtk DataFile Version 3.0
one cell
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 8 double
0 0 0  1 0 0  1 1 0  0 1 0  0 0 1  1 0 1  1 1 1  0 1 1
CELLS 1 9
8 0 1 2 3 4 5 6 7
CELL_TYPES 1
12
"""
    (poisson.directory / "one.vtk").write_text(mesh)
    poisson.write(CUBE)
    for text, needs in (("{generator: hyper_ball}", False), ("{file: one.vtk, refinements: 2}", True)):
        found = libraries(poisson, "run", "case.yaml", "--output", "out", "--overwrite", "--backend", "cpu", *NO_FILES, "--set", f"problem.mesh={text}")
        assert "libpoisson_dealii.so" in found
        assert ("libpoisson_grids.so" in found) == any(name.startswith("libvtk") for name in found) == needs, found


@pytest.mark.parametrize("module", NEEDS)
def test_a_library_that_is_missing_is_told_before_there_is_work_to_lose(poisson, module):
    """Another library of that name, too; of libraries that nothing needs nothing is said."""
    alone = shutil.copy(EXECUTABLE, poisson.directory / "alone")
    config = poisson.write(CUBE)

    def run(command, *words):
        return subprocess.run([alone, command, config, "--quiet", *words], cwd=poisson.directory, capture_output=True, text=True, timeout=100)

    def refused(command, reason, *words):
        done = run(command, *settings_that_need(module), *words)
        return done.returncode == 3 and all(text in done.stderr for text in (module, "beside the program", reason)) and done.stderr.count("poisson: error: ") == 1

    assert run("run", "--output", "box", *NO_FILES).returncode == 0
    assert refused("check", "No such file") and refused("run", "No such file", "--output", "out")
    (poisson.directory / module).write_bytes(b"no library")
    assert refused("run", "file too short", "--output", "out")
    assert not (poisson.directory / "out").exists()


def test_libraries_are_found_from_anywhere(poisson):
    """By a link to the program, and in the folder lib beside that of the program, as an installation has them."""
    config = poisson.write(CUBE)
    (poisson.directory / "link").symlink_to(EXECUTABLE)
    for folder in ("bin", "lib", "elsewhere"):
        (poisson.directory / folder).mkdir()
    installed = shutil.copy(EXECUTABLE, poisson.directory / "bin")
    (poisson.directory / "lib/libpoisson_cairo.so").symlink_to(FOLDER / "libpoisson_cairo.so")
    for number, program in enumerate((poisson.directory / "link", installed)):
        subprocess.run([program, "run", config, "--output", f"out{number}", "--quiet", *settings_that_need("libpoisson_cairo.so")],
                       cwd=poisson.directory / "elsewhere", check=True, timeout=100)


def test_no_cuda_switches_outside_core():
    bad = []
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".hpp", ".cpp") and not name.startswith("gpu/core/"):
                bad += [name for line in path.read_text().splitlines() if re.match(r"\s*#\s*(if|elif).*CUDA", line)]
    assert not bad, bad


def test_helpers_of_a_test_program_have_names_of_their_own():
    """Which of its files are compiled together changes with every new one; then equal names collide that did not before."""
    function = re.compile(r"^[\w\[][\w:<>,&*\[\] ]*?[ *&](\w+)\(([^;{]*)\)(?: const)?(?: noexcept)? \{", re.M)
    n_found = 0
    for layer in ("app", "assembly", "gpu", "output"):
        files_of = {}
        for path in sorted((ROOT / "tests" / layer).rglob("*.cpp")):
            for name, parameters in function.findall(path.read_text()):
                types = re.sub(r"\s+", " ", re.sub(r"\b\w+(?: = [^,]*)?(?=,|$)", "", parameters))
                files_of.setdefault((name, types), set()).add(str(path.relative_to(ROOT)))
        twice = {name: sorted(files) for (name, _), files in files_of.items() if len(files) > 1 and not name.startswith("TEST")}
        assert not twice, f"give one of each pair another name: {twice}"
        n_found += len(files_of)
    assert n_found > 300


def test_the_rules_see_something():
    assert any(t.startswith("deal.II/") for _, _, t in includes()) and any(t.startswith("vtk") for _, _, t in includes())
