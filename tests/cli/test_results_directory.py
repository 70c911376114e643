"""What a run does to the folder it writes to: nobody else's files are touched, nothing that is finished is lost, and records say
what there is."""

import json
import os
import resource
import shutil
import signal
import subprocess

import pytest
from conftest import CUBE, ROOT, SLOWLY, array, read_solution

LONG = ["--set", "problem.mesh.cells=[40,40,40]", "--set", "output.picture=false", "--set", "problem.source='exp(3*x)*y'", "--set",
        "solver.precision=double_double", "--set", "solver.preconditioner=none", "--set", "matrix.format=csr"]
SWEEP = CUBE + "sweep: {problem.mesh.cells: [[24, 24, 24], [25, 25, 25]]}\noutput: {picture: false, vtk: {compression: none}}\n"


def room_for_pictures():
    """Every write beyond 512 KiB fails: pictures fit, larger solutions do not."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 * 65536, 8 * 65536))


def small_files():
    """Every write beyond 64 KiB fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


def begin(poisson, *words, until):
    """Starts a command, and stops its process after the line that begins with `until`."""
    process = subprocess.Popen(poisson.command(*words), cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    for line in process.stdout:
        if line.strip().startswith(until):
            break
    else:
        pytest.fail("the command ended: " + process.communicate()[1])
    process.send_signal(signal.SIGSTOP)
    return process


def end(process, with_signal=signal.SIGCONT):
    """The exit code and errors after a signal, and after going on."""
    process.send_signal(with_signal)
    process.send_signal(signal.SIGCONT)
    errors = process.communicate(timeout=120)[1]
    return process.returncode, errors


# --- what a record says


def test_a_record_says_what_was_not_written(poisson):
    config = poisson.write(CUBE.replace("[8, 8, 8]", "[24, 24, 24]"))
    done = poisson("run", config, "--output", "out", "--set", "output.vtk.compression=none", code=3, preexec_fn=room_for_pictures)
    r = poisson.record()
    assert r["status"] == "converged" and r["exit_code"] == 3
    assert [f["file"] for f in r["files_failed"]] == ["solution.vti"] and "solution.vti" in r["files_failed"][0]["reason"]
    assert r["error"] == r["files_failed"][0]["reason"] and r["error"] in done.stderr
    # The picture fits, and is not lost for the file that does not; a .pvd of a file that is not there would be of no use.
    assert "solution.png" in r["files"] and "solution.pvd" not in r["files"]
    assert set(r["files"]) == set(os.listdir(poisson.directory / "out"))
    poisson("run", config, "--output", "out", "--overwrite", "--quiet")
    r = poisson.record()
    assert r["exit_code"] == 0 and r["files_failed"] == [] and "error" not in r and "solution.vti" in r["files"]


def test_exit_codes_stand_in_the_record(poisson):
    config = poisson.write(CUBE + "output: {picture: false}\nanalysis: {svd: [{of: field, at: 7, points: 5}]}\n")
    poisson("run", config, "--output", "a", "--quiet", code=1)
    assert poisson.record("a")["exit_code"] == 1 and "misses the mesh" in poisson.record("a")["error"]
    poisson("run", config, "--output", "b", "--quiet", "--set", "solver.max_iterations=1", "--set", "problem.source='exp(x)*y'", "--set",
            "analysis.svd=[]", code=2)
    assert poisson.record("b")["exit_code"] == 2


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_quiet_says_why_it_is_not_converged(poisson, command):
    config = poisson.write(CUBE.replace("3*pi^2*", "exp(x)*y*") + "sweep: {problem.element.order: [1, 2]}\noutput: {picture: false}\n")
    done = poisson(command, config, "--output", "out", "--quiet", "--set", "solver.max_iterations=2", code=2)
    assert done.stdout == "" and done.stderr.startswith("poisson: ") and done.stderr.count("\n") == 1
    assert "max_iterations: " in done.stderr


def test_svd_record_says_what_was_not_written(poisson):
    poisson("svd", "--random", 80, "--vectors", "--output", "out", code=3, preexec_fn=small_files)
    r = poisson.record()
    assert r["exit_code"] == 3 and [f["file"] for f in r["files_failed"]] == ["u.mtx", "v.mtx"]
    assert set(r["files"]) == set(os.listdir(poisson.directory / "out")) and "singular_values.csv" in r["files"]


# --- sweeps


def solutions(poisson):
    return len(list((poisson.directory / "out/cases").glob("*/solution.vti")))


def test_resume_does_what_could_not_be_written(poisson):
    config = poisson.write(SWEEP)
    poisson("sweep", config, "--output", "out", code=3, preexec_fn=small_files)
    assert solutions(poisson) == 0
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())
    assert summary["exit_code"] == 3 and [c["exit_code"] for c in summary["cases"]] == [3, 3]
    assert "2 to do" in poisson("sweep", config, "--output", "out", "--resume").stdout
    assert solutions(poisson) == 2
    assert json.loads((poisson.directory / "out/sweep.json").read_text())["exit_code"] == 0
    next((poisson.directory / "out/cases").glob("*/solution.vti")).unlink()
    assert "1 to do" in poisson("sweep", config, "--output", "out", "--resume").stdout
    assert solutions(poisson) == 2
    assert "0 to do" in poisson("sweep", config, "--output", "out", "--resume").stdout


def test_a_sweep_replaces_a_run_and_leaves_others_alone(poisson):
    config = poisson.write(SWEEP.replace("24, 24, 24", "3, 3, 3").replace("25, 25, 25", "4, 4, 4"))
    poisson("run", config, "--output", "out", "--quiet")
    of_run = poisson.record()["files"]
    poisson.write("mine", "out/notes.txt")
    poisson("sweep", config, "--output", "out", "--quiet", code=1)
    poisson("sweep", config, "--output", "out", "--quiet", "--overwrite")
    there = set(os.listdir(poisson.directory / "out"))
    assert there == {"notes.txt", "sweep.csv", "sweep.json", "report.html", "case.pvd", "cases"} and "solution.vti" in of_run
    case = next((poisson.directory / "out/cases").iterdir())
    (case / "notes.txt").write_text("mine")
    (poisson.directory / "out/cases/mine").mkdir()
    poisson("sweep", config, "--output", "out", "--quiet", "--overwrite", "--set", "problem.source=1", "--set", "problem.exact=null")
    cases = poisson.directory / "out/cases"
    assert os.listdir(case) == ["notes.txt"] and (cases / "mine").is_dir() and len(os.listdir(cases)) == 4
    poisson("run", config, "--output", "out", "--quiet", "--overwrite")
    assert set(os.listdir(poisson.directory / "out")) == {*of_run, "notes.txt", "cases"}


# --- two at once


def test_a_second_run_is_refused(cube):
    poisson, config = cube
    first = begin(poisson, "run", config, "--output", "out", *LONG, until="mesh")
    try:
        for words in (["run", config], ["run", config, "--overwrite"], ["sweep", poisson.write(SWEEP)], ["svd", "--random", 3]):
            error = poisson(*words, "--output", "out", "--quiet", code=1).stderr
            assert f"process {first.pid} on {os.uname().nodename} since 2" in error
    finally:
        code, errors = end(first)
    assert code == 0, errors
    assert set(poisson.record()["files"]) == set(os.listdir(poisson.directory / "out"))
    poisson("run", config, "--output", "out", "--overwrite", "--quiet")


def test_a_second_sweep_is_refused(poisson):
    config = poisson.write(SLOWLY + SWEEP.replace("25, 25, 25", "40, 40, 40"))
    first = begin(poisson, "sweep", config, "--output", "out", until="1/2")
    try:
        for words in (["sweep", config], ["sweep", config, "--resume"], ["sweep", config, "--overwrite"]):
            assert f"process {first.pid} on" in poisson(*words, "--output", "out", code=1).stderr
    finally:
        code, errors = end(first)
    assert code == 0, errors
    assert ".poisson.lock" not in os.listdir(poisson.directory / "out")


def test_what_a_killed_run_leaves_is_ours(cube):
    poisson, config = cube
    # stopped in the analysis, when the solution is written and the record is not
    first = begin(poisson, "run", config, "--output", "out", *LONG, "--set", "analysis.svd=[{of: field, sample: box, points: 250}]", until="output")
    assert end(first, signal.SIGKILL)[0] == -signal.SIGKILL
    out = poisson.directory / "out"
    assert {".poisson.lock", "solution.vti"} <= set(os.listdir(out)) and not (out / "result.json").exists()
    assert "--overwrite" in poisson("run", config, "--output", "out", code=1).stderr
    poisson("run", config, "--output", "out", "--overwrite", "--set", "problem.source=log(-1)", code=1)  # does not forget whose they are
    poisson.write("half", "out/.solution.vti.4711-3.part")
    poisson.write("", "out/.write-test.4711-0.part")
    poisson.write("mine", "out/.mine.vtu.4711-3.part")
    poisson("run", config, "--output", "out", "--overwrite", "--quiet")
    assert set(os.listdir(out)) == {*poisson.record()["files"], ".mine.vtu.4711-3.part"}


def test_a_folder_that_cannot_be_locked(cube):
    poisson, config = cube
    (poisson.directory / "out/.poisson.lock").mkdir(parents=True)
    poisson("run", config, "--output", "out", "--quiet")
    assert poisson.record()["exit_code"] == 0


# --- files of others


@pytest.mark.parametrize("name", ["configuration.yaml", "resolved.yaml", "solution.vti", "solution.pvd", "solution.png", "residuals.csv",
                                  "residuals.png", "result.json", "svd0_field_values.csv"])
def test_files_of_others_are_not_replaced(poisson, name):
    config = poisson.write(CUBE + "analysis: {svd: [{of: field, points: 5}]}\n")
    poisson.write('{"files": ["solution.vti"]}', name)
    for words in ([], ["--overwrite"]):
        done = poisson("run", config, "--output", ".", *words, code=1)
        assert name in done.stderr and "output.directory" in done.stderr and "assembly" not in done.stdout
        assert sorted(os.listdir(poisson.directory)) == sorted(["case.yaml", name])
        assert (poisson.directory / name).read_text() == '{"files": ["solution.vti"]}'


def test_the_configuration_that_is_read_is_not_replaced(poisson):
    config = poisson.write("# mine\n" + CUBE, "configuration.yaml")
    assert "configuration.yaml" in poisson("run", config, "--output", ".", "--overwrite", code=1).stderr
    assert config.read_text().startswith("# mine\n")


def test_files_that_would_not_be_written_are_in_nobodys_way(poisson):
    config = poisson.write(CUBE)
    poisson.write("mine", "solution.vtu")
    poisson.write("mine", "solution.vtr")
    poisson("run", config, "--output", ".", "--quiet")
    poisson("run", config, "--output", ".", "--quiet", "--overwrite", "--set", "output.vtk.format=vtu", code=1)
    poisson("run", config, "--output", ".", "--quiet", "--set", "output.vtk.enabled=false", "--overwrite")
    assert (poisson.directory / "solution.vtu").read_text() == (poisson.directory / "solution.vtr").read_text() == "mine"


@pytest.mark.parametrize("words, name", [(["sweep", "case.yaml"], "sweep.csv"), (["sweep", "case.yaml"], "case.pvd"),
                                         (["svd", "--random", 5, "--vectors"], "u.mtx"), (["solve", "--matrix", "a.mtx"], "solution.mtx")])
def test_other_commands_do_not_replace_them_either(poisson, words, name):
    poisson.write(SWEEP)
    poisson.write("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n", "a.mtx")
    poisson.write("mine", name)
    for more in ([], ["--overwrite"]):
        assert name in poisson(*words, "--output", ".", *more, code=1).stderr
    assert (poisson.directory / name).read_text() == "mine" and not (poisson.directory / "cases").exists()


# --- interrupts


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_interrupt_before_the_solve(cube, number, code):
    poisson, config = cube
    process = begin(poisson, "run", config, "--output", "out", *LONG, "--set", "problem.mesh.cells=[80,80,80]", until="mesh")
    assert end(process, number)[0] == code
    r = poisson.record()
    assert r["status"] == "interrupted" and r["exit_code"] == code and r["reason"] == "interrupted before the solve"
    assert r["solver"]["residual_recursive"] is None and r["solver"]["residual_true"] is None and r["solver"]["iterations"] == 0
    assert set(r["files"]) == set(os.listdir(poisson.directory / "out"))


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_interrupted_sweep(poisson, number, code):
    config = poisson.write(SLOWLY + SWEEP.replace("25, 25, 25", "48, 48, 48"))
    process = begin(poisson, "sweep", config, "--output", "out", until="1/2")
    assert end(process, number)[0] == code
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())
    assert not summary["complete"] and summary["exit_code"] == code and summary["cases"][1]["status"] in ("interrupted", "not_run")
    poisson("sweep", config, "--output", "out", "--resume", "--quiet")
    assert solutions(poisson) == 2


def test_a_hangup_that_is_ignored_stays_ignored(cube):
    poisson, config = cube
    process = subprocess.Popen(poisson.command("run", config, "--output", "out"), cwd=poisson.directory, stdout=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=120) == 0


# --- a folder that does not stay


def test_a_folder_that_vanishes(cube):
    poisson, config = cube
    process = begin(poisson, "run", config, "--output", "out", *LONG, until="mesh")
    shutil.rmtree(poisson.directory / "out")
    code, errors = end(process)
    assert code == 3 and "'out' vanished" in errors
    r = poisson.record()
    assert r["status"] == "converged" and r["exit_code"] == 3 and "vanished" in r["error"]
    assert set(r["files"]) == set(os.listdir(poisson.directory / "out"))
    assert read_solution(poisson.directory / "out").GetNumberOfPoints() == 41**3


def test_a_folder_that_cannot_be_written_to_any_more(cube, monkeypatch):
    poisson, config = cube
    (poisson.directory / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(poisson.directory / "tmp"))
    process = begin(poisson, "run", config, "--output", "out", *LONG, until="mesh")
    shutil.rmtree(poisson.directory / "out")
    poisson.write("in the way", "out")
    code, errors = end(process)
    (rescue,) = (poisson.directory / "tmp").iterdir()
    assert code == 3 and f"the results are in '{rescue}'" in errors and "'out'" in errors
    r = json.loads((rescue / "result.json").read_text())
    assert r["status"] == "converged" and r["exit_code"] == 3 and set(r["files"]) == set(os.listdir(rescue))
    assert read_solution(rescue).GetNumberOfPoints() == 41**3


# --- resolved.yaml


def test_resolved_configuration_names_files_from_anywhere(poisson):
    (poisson.directory / "here").mkdir()
    (poisson.directory / "there").mkdir()
    shutil.copy(ROOT / "meshes/ball.msh", poisson.directory / "here/a.msh")
    poisson.write('problem:\n  mesh: {file: a.msh}\n  source: "1"\n  boundary: [{ids: all, type: dirichlet, value: "0"}]\n', "here/case.yaml")
    poisson.write("no mesh", "there/a.msh")
    poisson("run", "here/case.yaml", "--output", "here/out", "--quiet")
    there = type(poisson)(poisson.directory / "there")
    there("run", "../here/out/resolved.yaml", "--output", "out", "--quiet")
    a, b = poisson.record("here/out"), there.record()
    assert a["mesh"] == b["mesh"] and a["fingerprint"] == b["fingerprint"]
    u, v = (array(read_solution(poisson.directory / d).GetPointData(), "u") for d in ("here/out", "there/out"))
    assert u.tobytes() == v.tobytes()
    poisson.write((poisson.directory / "here/a.msh").read_text() + "\n", "here/a.msh")
    poisson("run", "here/case.yaml", "--output", "again", "--quiet")
    assert poisson.record("again")["fingerprint"] != a["fingerprint"]  # an edited file is another problem


def test_resolved_system_names_files_from_anywhere(poisson):
    poisson.write("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n", "a.mtx")
    poisson("solve", "--matrix", "a.mtx", "--output", "out", "--quiet")
    assert str(poisson.directory / "a.mtx") in (poisson.directory / "out/resolved.yaml").read_text()
    (poisson.directory / "b").mkdir()
    type(poisson)(poisson.directory / "b")("solve", "--matrix", "../a.mtx", "--output", "out", "--quiet")
    assert poisson.record("b/out")["fingerprint"] == poisson.record()["fingerprint"]
