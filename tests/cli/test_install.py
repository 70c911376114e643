"""What `cmake --install` writes: the program from any folder, the library for other projects, manual pages, completion."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import CUBE, EXECUTABLE, ROOT

BUILD = pathlib.Path(EXECUTABLE).parents[1]
pytestmark = pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="the program is not in a build folder")
CLEAN = {"HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}


def call(*words, cwd, code=0, **env):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=300, env=CLEAN | {"PATH": os.environ["PATH"]} | env)
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def cache(name):
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation, moved to another place after it was made."""
    folder = tmp_path_factory.mktemp("installation")
    call("cmake", "--install", BUILD, "--prefix", folder / "made", cwd=folder)
    (folder / "made").rename(folder / "usr")
    return folder / "usr"


@pytest.fixture
def installed(prefix, tmp_path):
    def run(*words, **kwargs):
        return call("poisson", *words, cwd=tmp_path, PATH=f"{prefix / 'bin'}:/usr/bin:/bin", **kwargs)

    return run


def test_the_program_works_from_any_folder(installed, prefix, tmp_path):
    installed("init", "capacitor", "--output", "mine.yaml")
    log = tmp_path / "loaded"
    installed("run", "mine.yaml", "--output", "results/mine", "--quiet", "--set", "problem.mesh.refinements=0", LD_DEBUG="files", LD_DEBUG_OUTPUT=str(log))
    record = json.loads((tmp_path / "results/mine/result.json").read_text())
    assert record["status"] == "converged" and "solution.png" in record["files"]
    loaded = {name for path in tmp_path.glob("loaded.*") for name in re.findall(r"calling init: (/\S+)", path.read_text()) if "libpoisson" in name}
    assert loaded and all(pathlib.Path(name).resolve().is_relative_to(prefix) for name in loaded), loaded
    share = prefix / "share/poisson"
    installed("run", share / "configs/from_file.yaml", "--quiet", "--set", "problem.mesh.refinements=0")  # by deal.II, with a mesh beside it
    assert json.loads((tmp_path / "results/from_file/result.json").read_text())["status"] == "converged"
    installed("check", share / "configs/gallery/heat_sink.yaml", "--quiet")
    assert json.loads((share / "poisson.schema.json").read_text()) == json.loads(installed("schema", "--json"))


def test_every_configuration_and_mesh_is_there(prefix):
    for folder in ("configs", "meshes"):
        here = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        assert here and {path.relative_to(prefix / "share/poisson") for path in (prefix / "share/poisson" / folder).rglob("*") if path.is_file()} == here
    documents = prefix / "share/doc/poisson"
    assert all((documents / name).exists() for name in ("README.md", "docs/usage.md", "CITATION.cff", "examples/CMakeLists.txt"))


def test_python_finds_the_program_beside_it(prefix, tmp_path):
    (tmp_path / "cube.yaml").write_text(CUBE + "output: {picture: false}\n")
    said = call(sys.executable, "-c", "import poisson; print(poisson.executable(), poisson.run('cube.yaml', progress=False).status)", cwd=tmp_path,
                PATH="/usr/bin:/bin", PYTHONPATH=str(prefix / "lib/python3/dist-packages"))
    assert said.split() == [str(prefix / "bin/poisson"), "converged"]


@pytest.fixture(scope="module")
def examples(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "gpu/examples", folder / "source")  # where no header of the source tree is near
    call("cmake", "-S", "source", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
         f"-DCMAKE_CXX_COMPILER={cache('CMAKE_CXX_COMPILER')}", f"-DCMAKE_CXX_FLAGS={'-fsanitize=address,undefined' if cache('POISSON_SANITIZE') == 'ON' else ''}", cwd=folder)
    call("cmake", "--build", "build", cwd=folder)
    return folder / "build"


def test_a_project_finds_the_library(examples, prefix):
    for path in examples.rglob("*.d"):
        assert str(ROOT) not in path.read_text()
    said = call(examples / "multigrid", 20, cwd=examples, ASAN_OPTIONS="detect_leaks=0")
    error = re.fullmatch(r"converged after (\d+) iterations, ([2-9]) levels, largest error (\S+)\n", said)
    assert error and int(error[1]) < 20 and float(error[3]) < 1e-9, said
    said = call(examples / "double_double", 200, cwd=examples, ASAN_OPTIONS="detect_leaks=0")
    error = re.fullmatch(r"converged after 100 iterations, residual \S+, relative error (\S+)\n", said)  # 100 different eigenvalues count, by symmetry
    assert error and float(error[1]) < 1e-26, said




DENSE = """
#include "gpu/kernels/cpu/lapack.hpp"
#include <cstdio>
int main() { return poisson::lapack().%s == nullptr; }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(dense LANGUAGES CXX)
find_package(poisson REQUIRED COMPONENTS lapack)
add_executable(dense dense.cpp)
target_link_libraries(dense PRIVATE poisson::gpu poisson::lapack)
"""


def test_singular_values_come_with_a_component(prefix, tmp_path):
    if cache("POISSON_SANITIZE") == "ON":
        pytest.skip("flags of sanitizers are not those of the package")
    member = re.search(r"\(\*(\w+)\)\(", (ROOT / "gpu/kernels/cpu/lapack.hpp").read_text())[1]
    (tmp_path / "dense.cpp").write_text(DENSE % member)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    call("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={cache('CMAKE_CXX_COMPILER')}", cwd=tmp_path)
    call("cmake", "--build", "build", cwd=tmp_path)
    call("build/dense", cwd=tmp_path)  # loads no module: none is near
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("COMPONENTS lapack", "COMPONENTS lapck"))
    call("cmake", "-B", "other", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path, code=1)


def test_pkg_config_knows_it(prefix, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    if cache("POISSON_SANITIZE") == "ON":
        pytest.skip("flags of sanitizers are not those of the package")
    flags = call("pkg-config", "--cflags", "--libs", "poisson", cwd=tmp_path, PKG_CONFIG_PATH=":".join(map(str, prefix.rglob("pkgconfig")))).split()
    compiler = cache("CMAKE_CXX_COMPILER")
    call(compiler, ROOT / "gpu/examples/double_double.cpp", *flags, "-o", "program", cwd=tmp_path)
    assert call(tmp_path / "program", 50, cwd=tmp_path).startswith("converged after 25 iterations")


# ------------------------------------------------------------------------------------------------------------------- manual, completion


def options_of(command):
    text = subprocess.run([EXECUTABLE, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (?:-h \[ )?(--[a-z-]+)", text, re.MULTILINE))


COMMANDS = sorted({found[1] for found in re.finditer(r"^  poisson ([a-z]+)", subprocess.run([EXECUTABLE, "--help"], capture_output=True, text=True).stdout, re.MULTILINE)}
                  | {"bench svd"})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_manual_page_has_every_option(prefix, command):
    page = prefix / f"share/man/man1/poisson-{command.replace(' ', '-')}.1"
    text = page.read_text().replace("\\-", "-").replace("\\e", "\\")
    listed = set(re.findall(r"^\.TP\n\.B (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))
    assert listed == options_of(command) and "--help" in listed
    assert text.startswith(f'.TH POISSON-{command.replace(" ", "-").upper()} 1 "" "poisson ')
    for section in ("NAME", "SYNOPSIS", "OPTIONS", "SEE ALSO"):
        assert f".SH {section}\n" in text
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=True)
        assert done.stderr == ""


def test_the_manual_names_every_command(prefix):
    text = (prefix / "share/man/man1/poisson.1").read_text().replace("\\-", "-")
    for command in COMMANDS:
        assert f".B poisson {command}" in text and f"poisson-{command.replace(' ', '-')} (1)" in text
    assert "130, 143, 129 interrupted" in text


def completed(prefix, *words):
    """What completion offers for the last word."""
    script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _poisson; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, str(prefix / "share/bash-completion/completions/poisson"), str(prefix / "bin/poisson"), *words],
                          capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return set(done.stdout.split())


def test_bash_completes_commands_options_values_and_keys(prefix):
    assert completed(prefix, "") == {command for command in COMMANDS if " " not in command} | {"--help", "--version"}
    assert completed(prefix, "sw") == {"sweep"} and completed(prefix, "--v") == {"--version"}
    for command in {*COMMANDS, "bench spmv"} - {"bench"}:
        assert completed(prefix, *command.split(), "--") == options_of(command), command
    assert completed(prefix, "run", "x.yaml", "--backend", "") == {"auto", "cpu", "cuda"}
    assert completed(prefix, "bench", "") == {"spmv", "convert", "solve", "svd"}
    assert completed(prefix, "run", "--set", "solver.tol") == {"solver.tolerance="}
    assert completed(prefix, "schema", "problem.mesh.ref") >= {"problem.mesh.refinements"}
    assert "capacitor" in completed(prefix, "init", "ca")
    assert completed(prefix, "run", "READ") == {"README.md"} and completed(prefix, "run", "--output", "doc") == {"docs"}


# ------------------------------------------------------------------------------------------------------------------ versions, licences


def test_the_version_tells_what_it_was_made_with():
    text = subprocess.run([EXECUTABLE, "--version"], capture_output=True, text=True, check=True).stdout
    lines = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert list(lines) == ["poisson", "commit", "build", "compiler", "CUDA", "MPI", "libraries"]
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", lines["commit"])
    major = subprocess.run([cache("CMAKE_CXX_COMPILER"), "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip().split(".")[0]
    assert re.search(rf"\b{major}\.\d", lines["compiler"]) and cache("CMAKE_BUILD_TYPE") in lines["build"]
    assert lines["CUDA"] == "none" or re.fullmatch(r"nvcc \d+\.\d+\S*, compute capabilities [\d ]+\S*", lines["CUDA"])
    assert lines["MPI"] == "none" or re.search(r"\d+\.\d+", lines["MPI"])
    assert re.search(r"deal\.II \d.*VTK \d.*Boost \d", lines["libraries"])


def test_the_version_is_everywhere_the_same():
    version = re.search(r"project\(poisson VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f"project(poisson_gpu VERSION {version} " in (ROOT / "gpu/CMakeLists.txt").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert subprocess.run([EXECUTABLE, "--version"], capture_output=True, text=True, check=True).stdout.startswith(f"poisson {version}\n")


def test_the_citation_has_what_its_format_requires():
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation) and citation["authors"]


def test_every_library_that_the_build_looks_for_has_its_licence():
    page = (ROOT / "docs/licences.md").read_text()
    found = set()
    for path in (ROOT / "CMakeLists.txt", ROOT / "gpu/CMakeLists.txt", ROOT / "app/CMakeLists.txt"):
        text = path.read_text()
        found |= set(re.findall(r"^ *(?:find_package|pkg_check_modules)\((\w[\w.-]*)", text, re.MULTILINE))
    names = {"deal.II": "deal.II", "yaml-cpp": "yaml-cpp", "nlohmann_json": "JSON for Modern C++", "ZLIB": "zlib", "hdf5_serial": "HDF5", "netcdf": "netCDF", "lz4": "LZ4",
             "lzma": "liblzma", "cairo": "Cairo", "CUDAToolkit": "CUDA", "LAPACK": "OpenBLAS", "GTest": "GoogleTest"}
    found -= {"PkgConfig"}
    assert len(found) >= 12 and not [name for name in found if f"| {names.get(name, name)} " not in page]
