"""Processes that take case after case: results are those of a process for each case, and what ends one does not end the others."""

import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from conftest import CUBE, EXECUTABLE, ROOT, SLOWLY

# Neighbours differ in everything: meshes, elements, who assembles, formats, precisions, preconditioners. Some do not converge, one fails.
KINDS = """
problem:
  mesh: {file: two_materials.msh}
  coefficient: "1 + x*x"
  source: "exp(x)*y + 1"
  boundary: [{ids: all, type: dirichlet, value: "x + z"}]
solver: {max_iterations: 2000}
sweep:
  mode: zip
  problem.mesh:
    - {cells: [6, 5, 4]}
    - {cells: [6, 5, 4]}
    - {generator: hyper_ball, refinements: 2}
    - {generator: hyper_ball, refinements: 2}
    - {file: two_materials.msh}
    - {cells: [6, 5, 4]}
    - {cells: [9, 9, 9]}
    - {file: two_materials.msh, refinements: 1}
    - {cells: [6, 5, 4]}
    - {cells: [6, 5, 4]}
  problem.element.order: [1, 2, 1, 2, 1, 1, 1, 2, 1, 1]
  problem.coefficient: ["1 + x*x", "1", "2", "1 + x*x", "1", "x - 0.5", "3", "1 + x", "1", "1"]
  matrix.format: [auto, csr, auto, matrix_free, sell_c_sigma, auto, half_cds, auto, csr, auto]
  solver.precision: [auto, double, double_double, auto, refined, auto, auto, double, auto, auto]
  solver.preconditioner: [auto, jacobi, auto, auto, ic0, auto, multigrid, auto, none, auto]
  solver.max_iterations: [2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 2, 2000]
output:
  probes: [{at: [0.25, 0.25, 0.25], name: p}]
"""
FAILING = 5
SLOW = CUBE.replace("3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)", "exp(x)*y") + SLOWLY.replace("{precision", "{tolerance: 1e-26, precision") + """
sweep: {problem.mesh.cells: [[2, 2, 2], [48, 48, 48], [3, 3, 3], [4, 4, 4]]}
output: {picture: false, vtk: {enabled: false}}
"""


@pytest.fixture(scope="module")
def differences():
    """Of two files, but for what was measured."""
    loader = importlib.machinery.SourceFileLoader("compare_builds", str(ROOT / "tools/compare_builds"))
    sys.dont_write_bytecode = True
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_builds", loader))
    loader.exec_module(tool)
    return lambda name, a, b: (found := tool.of_files(name, a, b)) and (found.what, found.place, found.old, found.new)


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
        return [int(word) for word in f.read().split()]


def start(poisson, config, *words, **kwargs):
    return subprocess.Popen([EXECUTABLE, "sweep", str(config), "--output", "out", *map(str, words)], cwd=poisson.directory, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def wait_for_log(poisson, process, number, text):
    """The log of a case, once it has this text."""
    for _ in range(6000):
        for log in poisson.directory.glob(f"out/cases/case_00{number}_*/log.txt"):
            if text in log.read_text():
                return log
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("it never came")


def sweep_record(poisson):
    return json.loads((poisson.directory / "out/sweep.json").read_text())


@pytest.fixture
def together_and_alone(poisson, differences):
    """Runs all cases of a sweep in live workers, and each in a process of its own; compares all their files. Returns the cases of sweep.json."""

    def compare(text, jobs=1):
        for name in ("together", "alone"):
            (poisson.directory / name).mkdir()
            poisson.write(text.replace("two_materials.msh", str(ROOT / "meshes/two_materials.msh")), f"{name}/sweep.yaml")

        def run(folder, *words):
            return subprocess.run([EXECUTABLE, "sweep", "sweep.yaml", "--output", "out", "--threads", "1", *words], cwd=poisson.directory / folder,
                                  text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)

        done = run("together", "--jobs", str(jobs))
        cases = json.loads((poisson.directory / "together/out/sweep.json").read_text())["cases"]
        for number in range(len(cases)):
            run("alone", "--case", str(number))
        names = [sorted(path.relative_to(poisson.directory / folder).as_posix() for path in (poisson.directory / folder).glob("out/cases/*/*"))
                 for folder in ("together", "alone")]
        assert names[0] == names[1] and len(names[0]) > 3 * len(cases), done.stderr
        for case in cases:
            path = poisson.directory / "together/out" / case["directory"] / "result.json"
            case["record"] = json.loads(path.read_text()) if path.exists() else None
        for name in names[0]:
            together, alone = (poisson.directory / folder / name for folder in ("together", "alone"))
            if name.endswith("result.json"):  # commands differ in options without effect on results
                for path in (together, alone):
                    record = json.loads(path.read_text())
                    del record["provenance"]["command"]
                    path.write_text(json.dumps(record))
            elif name.endswith("report.html"):
                for path in (together, alone):
                    path.write_text("\n".join(line for line in path.read_text().split("\n") if "--case" not in line))
            assert differences(name, together, alone) is None
        return cases

    return compare


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_those_of_a_process_for_each_case(together_and_alone, jobs):
    """All files of all cases. Two jobs begin with the largest mesh, so that neighbours are others."""
    cases = together_and_alone(KINDS, jobs)
    assert [case["exit_code"] for case in cases] == [1 if i == FAILING else 2 if i == 8 else 0 for i in range(10)]


# Beside its matrix a case has a source and values on the boundary: some neighbours have the same matrix, and some another. The data of
# one are wrong, and one has nothing but zeros.
SHARED = """
parameters: {k: 1, g: 0, s: 1}
problem:
  mesh: {MESH}
  coefficient: "1 + k*x*x"
  source: "s"
  boundary: [{ids: all, type: TYPE, value: "VALUE"ALPHA}]
  element: {order: ORDER}
matrix: {format: FORMAT}
solver: {preconditioner: PRECONDITIONER, tolerance: 1e-9MORE}
sweep:
  mode: zip
  parameters.k: [1, 1, 1, 1, 3, 3, 3, 3, 1, 1]
  parameters.g: [0, 1, 2, 0, 0, 2, 2, 2, 2, 2]
  parameters.s: [1, 1, 7, 0, 0, 2, 3, 1, 2, 2]
  problem.source: ["s", "s*y", "exp(s*x)", "s", "s", "s", "log(-s)", "s*z", "s", "s*x"]
output: {probes: [{at: [0.25, 0.25, 0.25], name: p}], vtk: {enabled: false}, picture: false, report: false}
"""
MAKES_SETUP = [0, 5, 7, 8]  # 4, nothing but zeros, needs none; the process of 6 has ended
SYSTEMS = {
    "box": {},
    "box_jacobi_double_double": {"PRECONDITIONER": "jacobi", "MORE": ", precision: double_double"},
    "graded": {"MESH": "cells: [7, 6, 5], growth: [1.2, 1, 0.8]"},
    "free": {"FORMAT": "matrix_free"},
    "csr_ic0": {"FORMAT": "csr", "PRECONDITIONER": "ic0"},
    "csr_auto": {"FORMAT": "auto", "MESH": "cells: [6, 5, 4], extent: [1, 2, 1]", "ORDER": "2", "PRECONDITIONER": "auto"},
    "lattices": {"MESH": "generator: hyper_ball, refinements: 2"},
    "cells_of_order_2": {"MESH": "generator: hyper_ball, refinements: 1", "ORDER": "2", "FORMAT": "matrix_free"},
    "file_bicgstab": {"MESH": "file: two_materials.msh", "FORMAT": "sell_c_sigma", "PRECONDITIONER": "ilu0", "MORE": ", method: bicgstab"},
    "robin": {"TYPE": "robin", "ALPHA": ", alpha: 2"},
    "refined": {"MORE": ", precision: refined"},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_cases_with_the_same_matrix_share_it(together_and_alone, system):
    words = {"MESH": "cells: [7, 6, 5]", "TYPE": "dirichlet", "VALUE": "g + g*x*y", "ALPHA": "", "ORDER": "1", "FORMAT": "half_cds",
             "PRECONDITIONER": "multigrid", "MORE": "", **SYSTEMS[system]}
    text = SHARED
    for word, value in words.items():
        text = text.replace(word, value)
    cases = together_and_alone(text)
    assert [case["exit_code"] for case in cases] == [1 if i == 6 else 0 for i in range(10)]
    made = [i for i, case in enumerate(cases) if case["record"] and case["record"]["solver"]["setup_seconds"] > 0]
    assert made == MAKES_SETUP


def test_no_case_gets_the_matrix_of_another_mesh(together_and_alone):
    """Meshes and elements come in turns, with equal numbers of unknowns, too."""
    text = """
problem:
  mesh: {cells: [6, 5, 4]}
  source: "1 + x"
  boundary: [{ids: [0, 1, 2, 3], type: dirichlet, value: "x"}, {ids: [4, 5], type: neumann, value: "1"}]
solver: {preconditioner: multigrid}
sweep:
  mode: zip
  problem.mesh:
    - {cells: [6, 5, 4]}
    - {cells: [4, 5, 6]}
    - {cells: [6, 5, 4]}
    - {cells: [6, 5, 4], extent: [1, 1, 2]}
    - {cells: [3, 5, 2]}
    - {cells: [6, 5, 4]}
    - {cells: [6, 5, 4], refinements: 1}
    - {cells: [6, 5, 4], refinements: 1}
  problem.element.order: [1, 1, 1, 1, 2, 1, 1, 1]
  problem.source: ["1", "1", "x", "x", "x", "2", "2", "y"]
output: {vtk: {enabled: false}, picture: false, report: false}
"""
    cases = together_and_alone(text)
    assert [case["exit_code"] for case in cases] == 8 * [0]
    assert [case["record"]["solver"]["setup_seconds"] > 0 for case in cases] == 7 * [True] + [False]


SMALL = """
problem:
  mesh: {cells: [4, 4, 4]}
  source: "s"
  boundary: [{ids: all, type: dirichlet, value: 0}]
parameters: {s: 1}
output: {picture: false, report: false, vtk: {enabled: false}}
sweep: {parameters.s: [1, 2, 3, 4, 5]}
"""


def reused(poisson):
    return [case["reused"] for case in sweep_record(poisson)["cases"]]


def test_a_sweep_that_is_killed_loses_no_finished_case(poisson):
    config = poisson.write(SMALL.replace("[1, 2, 3, 4, 5]", "{from: 1, to: 2000, count: 2000}"))
    process = start(poisson, config)
    wait_for_log(poisson, process, 9, "exit code 0")
    process.kill()
    process.communicate(timeout=60)
    assert (poisson.directory / "out/cases/.syncing").exists()
    records = poisson.directory.glob("out/cases/*/result.json")  # that of the case under way may be of an interrupted one
    done = {path.parent.name for path in records if json.loads(path.read_text())["status"] == "converged"}
    assert 10 <= len(done) < 2000
    more = start(poisson, config, "--resume", "--set", "sweep.parameters.s={from: 1, to: 12, count: 12}")
    out, err = more.communicate(timeout=60)
    assert more.returncode == 0, err
    cases = sweep_record(poisson)["cases"]
    assert [case["reused"] for case in cases] == [case["directory"].split("/")[1] in done for case in cases]
    assert sum(reused(poisson)) >= 10


def test_files_that_do_not_come_to_disk_are_told(poisson):
    """A stand-in for the system's call that brings files to disk."""
    source, library = poisson.directory / "syncfs.c", poisson.directory / "syncfs.so"
    source.write_text("#include <errno.h>\nint syncfs(int folder) { (void)folder; errno = EIO; return -1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    config = poisson.write(SMALL)
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"  # the stand-in is loaded before the sanitizer
    process = start(poisson, config, env=os.environ | {"LD_PRELOAD": str(library), "ASAN_OPTIONS": options})
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "cannot write 'out/cases': Input/output error" in err
    assert (poisson.directory / "out/cases/.syncing").exists()
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())  # of all that was computed
    assert summary["exit_code"] == 3 and all(case["status"] == "converged" for case in summary["cases"])
    assert (poisson.directory / "out/sweep.csv").exists()
    assert start(poisson, config, "--resume").wait(timeout=60) == 0
    assert all(reused(poisson))


@pytest.mark.parametrize("restarted", [False, True])
def test_what_was_not_on_disk_when_the_machine_stopped_is_run_again(poisson, restarted):
    """A stand-in: the file that a sweep leaves when the machine stops tells of another start."""
    config = poisson.write(SMALL)
    assert start(poisson, config).wait(timeout=60) == 0
    assert not list(poisson.directory.glob("out/cases/.syncing*"))
    mark = poisson.directory / "out/cases/.syncing"
    mark.write_text("another start\n" if restarted else open("/proc/sys/kernel/random/boot_id").read())
    records = sorted(poisson.directory.glob("out/cases/*/result.json"))
    for i, record in enumerate(records):
        os.utime(record, (1000 + i, 1000 + i))
    os.utime(mark, (1003, 1003))
    collected = subprocess.run([EXECUTABLE, "sweep", str(config), "--output", "out", "--collect"], cwd=poisson.directory, capture_output=True, text=True)
    assert collected.returncode == (3 if restarted else 0)
    assert ("3-4" in collected.stdout + collected.stderr) == restarted, collected
    assert start(poisson, config, "--resume").wait(timeout=60) == 0
    assert reused(poisson) == 3 * [True] + 2 * [not restarted]
    assert not list(poisson.directory.glob("out/cases/.syncing*"))
    assert start(poisson, config, "--resume").wait(timeout=60) == 0
    assert all(reused(poisson))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
@pytest.mark.parametrize("stage", ["case 1 of 4", "assembly", "convert"])
def test_a_process_that_is_ended_is_replaced(poisson, how, stage):
    config = poisson.write(SLOW)
    process = start(poisson, config)
    wait_for_log(poisson, process, 1, stage)
    [worker] = children(process)
    os.kill(worker, how)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 3 and err.count("poisson: error: ") == 1, err
    assert f"1 of 4 cases failed; case 1: the process was ended by signal {int(how)} ({signal.strsignal(how)})" in err
    assert [case["exit_code"] for case in sweep_record(poisson)["cases"]] == [0, 3, 0, 0]
    assert sweep_record(poisson)["complete"]


def test_a_process_takes_case_after_case(poisson):
    """With two jobs there are two processes, whatever the number of cases, and one more for one that is killed."""
    config = poisson.write(SLOW.replace("[4, 4, 4]]", "[4, 4, 4], [5, 5, 5], [6, 6, 6], [7, 7, 7]]"))
    process = start(poisson, config, "--jobs", 2)
    seen = set()
    while len(list(poisson.directory.glob("out/cases/*/result.json"))) < 6:
        seen.update(children(process))
        assert process.poll() is None
    wait_for_log(poisson, process, 1, "convert")
    assert seen == set(children(process)) and len(seen) == 2
    slow = max(children(process), key=lambda pid: sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(") ")[1].split()[11:13])))
    os.kill(slow, signal.SIGKILL)
    process.communicate(timeout=120)
    assert [case["exit_code"] for case in sweep_record(poisson)["cases"]] == [0, 3, 0, 0, 0, 0, 0]


def test_memory_that_is_not_there(poisson):
    """A limit of the address space stands for a machine that is full."""
    config = poisson.write(SLOW.replace("[48, 48, 48]", "[180, 180, 180]"))
    limit = 1 << 30
    process = start(poisson, config, "--threads", 1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    _, err = process.communicate(timeout=300)
    assert process.returncode == 3 and "case 1: " in err and "memory" in err, err
    assert [case["exit_code"] for case in sweep_record(poisson)["cases"]] == [0, 3, 0, 0]


def test_a_case_beyond_the_time_limit_is_interrupted(poisson):
    config = poisson.write(SLOW.replace("sweep: {", "sweep: {time_limit: 1, "))
    done = poisson("sweep", config, "--output", "out", code=3)
    text = "it took longer than sweep.time_limit, 1 s, and was interrupted"
    assert f"1 of 4 cases failed; case 1: {text}" in done.stderr
    record = sweep_record(poisson)
    assert [case["exit_code"] for case in record["cases"]] == [0, 3, 0, 0] and record["complete"]
    assert record["cases"][1]["error"] == text and record["cases"][1]["status"] == "interrupted"
    done = poisson("sweep", config, "--output", "out", "--collect", code=3)
    assert f"case 1: {text}" in done.stderr
    done = poisson("sweep", config, "--output", "out", "--resume", "--set", "sweep.time_limit=0.5", code=3)
    assert "1 to do" in done.stdout


def test_a_case_that_hangs_is_killed(poisson):
    """A process that is stopped stands for one that no longer hears."""
    config = poisson.write(SLOW.replace("sweep: {", "sweep: {time_limit: 1, "))
    process = start(poisson, config)
    wait_for_log(poisson, process, 1, "mesh")
    os.kill(children(process)[0], signal.SIGSTOP)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "case 1: it took longer than sweep.time_limit, 1 s, and was killed" in err
    assert [case["exit_code"] for case in sweep_record(poisson)["cases"]] == [0, 3, 0, 0]
    assert "case 1: it took longer" in poisson("sweep", config, "--output", "out", "--collect", code=3).stderr


@pytest.mark.parametrize("value", ["0", "-1", "soon", "[1]"])
def test_wrong_limits(poisson, value):
    config = poisson.write(SLOW.replace("sweep: {", f"sweep: {{time_limit: {value}, "))
    assert "sweep.time_limit: found " in poisson("check", config, code=1).stderr
