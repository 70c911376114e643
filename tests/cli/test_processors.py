"""One program for several processors: which kernels the system's loader takes, and that results do not depend on them."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import EXECUTABLE, ROOT

LOADER = "/lib64/ld-linux-x86-64.so.2"
PROCESSORS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
pytestmark = pytest.mark.skipif(not os.path.exists(LOADER), reason="needs glibc on x86-64")


def best_here():
    """What the loader of this machine would take."""
    said = subprocess.run([LOADER, "--help"], capture_output=True, text=True, check=True).stdout
    return [name for name in PROCESSORS if re.search(rf"^ *{name} .*supported", said, re.MULTILINE)]


def masked(processor, *words, cwd):
    mask = ":".join(PROCESSORS[:PROCESSORS.index(processor) + 1])
    done = subprocess.run([LOADER, "--glibc-hwcaps-mask", mask, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_library_for_each_processor(tmp_path):
    """CMake's poisson_for_processors with two functions in place of kernels: one is the processor's, one calls the program."""
    (tmp_path / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
include("{ROOT}/tools/poisson_settings.cmake")
poisson_for_processors(example_kernels kernels.cpp)
set_source_files_properties(kernels.cpp PROPERTIES COMPILE_DEFINITIONS "PROCESSOR=\\"$<TARGET_PROPERTY:POISSON_PROCESSOR>\\"")
add_executable(example main.cpp)
target_link_libraries(example PRIVATE example_kernels)
target_link_options(example PRIVATE "LINKER:--export-dynamic-symbol=*poisson*")
set_target_properties(example PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${{CMAKE_BINARY_DIR}}/app" INSTALL_RPATH "$ORIGIN/../lib/poisson")
install(TARGETS example)
""")
    (tmp_path / "kernels.cpp").write_text("""#include <string>
int poisson_of_program();
std::string poisson_processor() { return std::string(PROCESSOR) + " " + std::to_string(poisson_of_program()); }
""")
    (tmp_path / "main.cpp").write_text("""#include <iostream>
#include <string>
int poisson_of_program() { return 42; }
std::string poisson_processor();
int main() { std::cout << poisson_processor(); }
""")
    run = lambda *words: subprocess.run(list(map(str, words)), cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300)  # noqa: E731
    run("cmake", "-S", ".", "-B", "build", f"-DPOISSON_CPU_ARCH={';'.join(PROCESSORS)}", "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_BUILD_TYPE=Debug")
    run("cmake", "--build", "build")
    run("cmake", "--install", "build", "--prefix", tmp_path / "usr")
    shutil.rmtree(tmp_path / "build/app")  # the installation is complete
    here = best_here()
    assert run(tmp_path / "usr/bin/example").stdout == f"{here[-1]} 42"
    for processor in here:
        assert masked(processor, tmp_path / "usr/bin/example", cwd=tmp_path) == f"{processor} 42"


def test_info_and_version_say_for_which_processor_the_kernels_are(poisson):
    said = re.search(r"kernels for (\S+?),? ", poisson("info").stdout + " ")[1]
    assert f"kernels for {said}\n" in poisson("--version").stdout
    has_several = (pathlib.Path(EXECUTABLE).parent / "glibc-hwcaps").exists()
    assert said == best_here()[-1] if has_several else said not in ("", None)


CASES = {"a box by multigrid": ("{cells: [24, 24, 24]}", 1, ""), "a ball of order 2": ("{generator: hyper_ball, refinements: 1}", 2, ""),
         "double-double": ("{cells: [8, 8, 8]}", 1, "solver: {precision: double_double, tolerance: 1e-25}"),
         "an adaptive mesh": ("{cells: [4, 4, 4], adaptive: {tolerance: 10%, max_cycles: 4}}", 1, "")}


@pytest.mark.skipif(not (pathlib.Path(EXECUTABLE).parent / "glibc-hwcaps").exists(), reason="built for one processor (.ci/full builds for several)")
@pytest.mark.parametrize("case", CASES)
def test_results_are_equal_up_to_rounding(poisson, case):
    mesh, order, rest = CASES[case]
    path = poisson.write(f"""
problem:
  mesh: {mesh}
  element: {{order: {order}}}
  coefficient: "1 + x^2"
  source: "exp(y)"
  boundary: [{{ids: all, type: dirichlet, value: "x*z"}}]
output: {{picture: false, report: false, vtk: {{enabled: false}}}}
{rest}
""")
    records = []
    for processor in best_here():
        masked(processor, EXECUTABLE, "run", path, "--output", processor, "--quiet", "--backend", "cpu", cwd=poisson.directory)
        records.append(json.loads((poisson.directory / processor / "result.json").read_text()))
    first = records[0]["quantities"]
    for record in records[1:]:
        assert record["status"] == "converged" and record["dofs"] == records[0]["dofs"]
        for name, value in first.items():
            if isinstance(value, float) and name != "balance":
                assert record["quantities"][name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
