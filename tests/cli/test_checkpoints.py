"""Runs that are cut off, and go on from their checkpoints: with the same bits as if nothing had happened."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import CUBE
from ranks import MPIRUN, on_ranks, ranks_command
from ranks import pytestmark as needs_mpirun
from test_ranks import ranks_of

CASE = """
problem:
  mesh: {{generator: box, cells: [{cells}, {cells}, {cells}]}}
  coefficient: "1 + x*x + 0.5*y"
  source: "1 + sin(3*x)*y"
  boundary:
    - {{ids: [0, 3], type: dirichlet, value: "x + 2*y - z"}}
    - {{ids: all, type: robin, alpha: "1", value: "z"}}
solver: {{method: {method}, precision: {precision}, preconditioner: {preconditioner}, tolerance: {tolerance}, checkpoint: {{iterations: {every}}}}}
output: {{picture: false, report: false}}
"""
SLOW = {"cells": 32, "method": "cg", "precision": "double_double", "preconditioner": "none", "tolerance": 1e-20, "every": 20}


def case(**settings):
    return CASE.format(**(SLOW | settings))


def folder(poisson, of="out"):
    return poisson.directory / of / "checkpoint"


def checkpoints(poisson, of="out"):
    """Numbers of the checkpoints that are there, oldest first."""
    return sorted(int(path.stem.removeprefix("checkpoint_")) for path in folder(poisson, of).glob("*.json")) if folder(poisson, of).exists() else []


def cut(poisson, words, how, of=2, until="checkpoint at iteration", tries=4):
    """Starts a run, and sends a signal to all its processes when it has left so many checkpoints. Returns its exit code."""
    n = of
    process = subprocess.Popen(words, cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    for line in process.stdout:
        n -= until in line
        if n == 0:
            break
    if MPIRUN and words[0] == MPIRUN:
        os.kill(ranks_of(process)[1], how)
    else:
        process.send_signal(how)
    out, err = process.communicate(timeout=120)
    assert n == 0, out + err
    if process.returncode == 0 and tries > 1 and "--resume" not in words:  # it had ended before the signal came: this machine is busy
        shutil.rmtree(poisson.directory / words[words.index("--output") + 1])
        return cut(poisson, words, how, of, until, tries - 1)
    return process.returncode


def expect_same(poisson, one, other):
    """Results with the same bytes, but for times, and for what tells that the run was cut."""
    a, b = poisson.directory / one, poisson.directory / other
    names = {path.name for path in a.iterdir() if path.is_file()}
    assert names == {path.name for path in b.iterdir() if path.is_file()}
    for name in names - {"result.json", "resolved.yaml", "configuration.yaml"}:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    first, second = poisson.record(one), poisson.record(other)
    assert first["quantities"] == second["quantities"]
    for key in ("iterations", "residual_recursive", "residual_true", "cycles", "method", "precision", "preconditioner", "bytes_per_iteration"):
        assert first["solver"][key] == second["solver"][key], key


SETTINGS = [{}, {"precision": "double", "cells": 60, "tolerance": 1e-12}, {"preconditioner": "multigrid", "cells": 40, "tolerance": 1e-26, "every": 1},
            {"method": "bicgstab", "preconditioner": "jacobi"}, {"method": "gmres", "precision": "refined"},
            {"method": "minres", "preconditioner": "jacobi"}, {"precision": "mixed", "preconditioner": "jacobi"}]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())) or "cg")
def test_goes_on_with_equal_bits(poisson, settings):
    config = poisson.write(case(**settings))
    poisson("run", config, "--output", "whole", "--quiet")
    assert not folder(poisson, "whole").exists()
    n = 1 if settings.get("every") == 1 else 2
    assert cut(poisson, poisson.command("run", config, "--output", "out", "--threads", "1"), signal.SIGKILL, n) == -signal.SIGKILL
    assert len(checkpoints(poisson)) >= n
    done = poisson("run", config, "--output", "out", "--resume")
    at = int(re.search(r"goes on from the checkpoint at iteration (\d+)", done.stdout)[1])
    assert at > 0 and not folder(poisson).exists()
    expect_same(poisson, "whole", "out")
    assert poisson.record()["solver"]["resumed"] == {"iteration": at, "exact": True}


def test_goes_on_after_sigterm_again_and_again(poisson):
    config = poisson.write(case(every=1000000))
    poisson("run", config, "--output", "whole", "--quiet")
    words = poisson.command("run", config, "--output", "out")
    assert cut(poisson, words, signal.SIGTERM, 1, "  assembly") == 143
    record = poisson.record()
    assert record["status"] == "interrupted" and len(checkpoints(poisson)) == 1
    assert cut(poisson, [*words, "--resume"], signal.SIGTERM, 1, "goes on from") == 143
    poisson(*words[1:], "--resume")
    expect_same(poisson, "whole", "out")


@needs_mpirun
@pytest.mark.parametrize("settings", [{}, {"method": "bicgstab", "preconditioner": "jacobi"}], ids=["cg", "bicgstab"])
def test_ranks_go_on_with_equal_bits(poisson, settings):
    config = poisson.write(case(**settings))
    on_ranks(poisson, 2, "run", config, "--output", "whole", "--quiet")
    assert cut(poisson, ranks_command(2, "run", config, "--output", "out"), signal.SIGKILL) != 0  # one of them
    done = on_ranks(poisson, 2, "run", config, "--output", "out", "--resume")
    assert "goes on from the checkpoint" in done.stdout and not folder(poisson).exists()
    expect_same(poisson, "whole", "out")


@needs_mpirun
@pytest.mark.parametrize("before, after", [(1, 2), (3, 2), (2, 1)])
@pytest.mark.parametrize("settings", [{}, {"precision": "refined", "every": 40}], ids=["double_double", "refined"])
def test_another_number_of_ranks_begins_at_the_solution(poisson, before, after, settings):
    config = poisson.write(case(**settings))
    cut(poisson, ranks_command(before, "run", config, "--output", "out") if before > 1 else poisson.command("run", config, "--output", "out"), signal.SIGTERM)
    saved = json.loads((folder(poisson) / f"checkpoint_{checkpoints(poisson)[-1]}.json").read_text())
    words = ("run", config, "--output", "out", "--resume")
    done = on_ranks(poisson, after, *words) if after > 1 else poisson(*words)
    assert f"is of {before} rank" in done.stderr
    record = poisson.record()
    assert record["status"] == "converged" and record["solver"]["resumed"] == {"iteration": saved["iteration"], "exact": False}
    # It begins where the other one was: x is there as double, which limits what is left.
    begin = float((poisson.directory / "out/residuals.csv").read_text().splitlines()[1].split(",")[1])
    assert begin == pytest.approx(saved["relative_residual"], rel=1e-2, abs=1e-14)
    assert saved["relative_residual"] < 1e-2


def start_and_kill(poisson, **settings):
    config = poisson.write(case(**settings))
    assert cut(poisson, poisson.command("run", config, "--output", "out", "--threads", "1"), signal.SIGKILL, 3) == -signal.SIGKILL
    assert len(checkpoints(poisson)) in (2, 3)  # three where the oldest was just to go
    return config


def damage(path, place):
    data = bytearray(path.read_bytes())
    data[place if place >= 0 else len(data) + place] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["piece", "end", "short", "missing", "manifest", "empty"])
def test_the_older_one_serves_where_the_newest_is_damaged(poisson, what):
    config = start_and_kill(poisson)
    poisson("run", config, "--output", "whole", "--quiet")
    old, new = checkpoints(poisson)[-2:]
    piece, manifest = folder(poisson) / f"checkpoint_{new}_rank_0.bin", folder(poisson) / f"checkpoint_{new}.json"
    if what in ("piece", "end"):
        damage(piece, -1 if what == "end" else 100_000)
    elif what == "short":
        piece.write_bytes(piece.read_bytes()[:-1000])
    elif what == "missing":
        piece.unlink()
    elif what == "manifest":
        manifest.write_text(manifest.read_text().replace('"iteration": ', '"iteration": 1'))
    else:
        manifest.write_bytes(b"")
    older = json.loads((folder(poisson) / f"checkpoint_{old}.json").read_text())["iteration"]
    done = poisson("run", config, "--output", "out", "--resume")
    assert "damaged" in done.stderr and f"goes on from the checkpoint at iteration {older}" in done.stdout
    expect_same(poisson, "whole", "out")


def test_damaged_ones_are_refused(poisson):
    config = start_and_kill(poisson)
    for number in checkpoints(poisson):
        damage(folder(poisson) / f"checkpoint_{number}_rank_0.bin", 5000)
    done = poisson("run", config, "--output", "out", "--resume", code=1)
    assert "damaged" in done.stderr and "--overwrite" in done.stderr
    poisson("run", config, "--output", "out", "--overwrite")
    assert not folder(poisson).exists()


def test_another_configuration_is_refused(poisson):
    config = start_and_kill(poisson)
    for setting in ("problem.source='2'", "solver.tolerance=1e-19", "problem.mesh.cells=[33, 32, 32]", "solver.preconditioner=jacobi"):
        assert "of another configuration" in poisson("run", config, "--output", "out", "--resume", "--set", setting, code=1).stderr
    # Neither outputs nor threads, nor when checkpoints are left, have to do with it.
    done = poisson("run", config, "--output", "out", "--resume", "--set", "output.unit=K", "--threads", "1", "--set", "solver.checkpoint.iterations=7")
    assert "goes on from the checkpoint" in done.stdout


def test_nothing_is_lost_by_a_slip(poisson):
    config = start_and_kill(poisson)
    before = checkpoints(poisson)
    assert "--resume" in poisson("run", config, "--output", "out", code=1).stderr
    assert "do not go together" in poisson("run", config, "--output", "out", "--resume", "--overwrite", code=1).stderr
    assert checkpoints(poisson) == before
    done = poisson("run", config, "--output", "out", "--overwrite")
    assert "goes on" not in done.stdout and not folder(poisson).exists() and "resumed" not in poisson.record()["solver"]


def test_without_a_checkpoint_the_run_begins(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--resume")
    assert "begins at its beginning" in done.stdout
    stamp = (poisson.directory / "out/result.json").stat().st_mtime_ns
    done = poisson("run", config, "--output", "out", "--resume")
    assert "nothing is left to do" in done.stdout and (poisson.directory / "out/result.json").stat().st_mtime_ns == stamp
    # Where a file is gone the run is not complete; another configuration is another run.
    next((poisson.directory / "out").glob("solution.vt*")).unlink()
    assert "begins at its beginning" in poisson("run", config, "--output", "out", "--resume").stdout
    assert "earlier run" in poisson("run", config, "--output", "out", "--resume", "--set", "problem.source='1'", code=1).stderr


def test_sigusr1_leaves_a_checkpoint_and_goes_on(poisson):
    config = poisson.write(case(every=0).replace("iterations: 0", "every: 1 h"))
    process = subprocess.Popen(poisson.command("run", config, "--output", "out", "--threads", "1"), cwd=poisson.directory, text=True, stdout=subprocess.PIPE)
    for line in process.stdout:
        if "  assembly" in line:
            break
    process.send_signal(signal.SIGUSR1)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and out.count("checkpoint at iteration") == 1, out
    assert poisson.record()["status"] == "converged" and not folder(poisson).exists()


def test_sigusr1_without_checkpoints_changes_nothing(poisson):
    config = poisson.write(case(every=0))
    process = subprocess.Popen(poisson.command("run", config, "--output", "out"), cwd=poisson.directory, text=True, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGUSR1)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and "checkpoint" not in out


def test_after_a_time(poisson):
    config = poisson.write(case(every=0).replace("iterations: 0", "every: 0.1 s"))
    done = poisson("run", config, "--output", "out", "--threads", "1")
    assert done.stdout.count("checkpoint at iteration") >= 2 and not folder(poisson).exists()


def test_a_checkpoint_that_cannot_be_written_is_a_warning(poisson):
    """The solution is what the run is for."""
    config = poisson.write(case())
    (poisson.directory / "out").mkdir()
    folder(poisson).write_text("not of ours")
    done = poisson("run", config, "--output", "out")
    assert done.stderr.count("could not be written, and the run goes on") == 1
    assert poisson.record()["status"] == "converged" and folder(poisson).read_text() == "not of ours"


def test_files_of_others_stay(poisson):
    config = poisson.write(case())
    folder(poisson).mkdir(parents=True)
    (folder(poisson) / "notes.txt").write_text("mine")
    poisson("run", config, "--output", "out")
    assert [path.name for path in folder(poisson).iterdir()] == ["notes.txt"]


def test_a_case_of_a_sweep_goes_on(poisson):
    config = poisson.write(case() + "sweep: {problem.mesh.cells: [[2, 2, 2], [32, 32, 32]]}\n")
    poisson("sweep", config, "--output", "whole", "--quiet")
    process = subprocess.Popen(poisson.command("sweep", config, "--output", "out", "--threads", "1"), cwd=poisson.directory, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (found := list(poisson.directory.glob("out/cases/*/checkpoint/*.json"))) and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)
    assert found
    of_case = found[0].parent.parent
    assert "1 to do" in poisson("sweep", config, "--output", "out", "--resume").stdout
    record = json.loads((of_case / "result.json").read_text())
    assert record["solver"]["resumed"]["exact"] and not (of_case / "checkpoint").exists()
    assert (of_case / "residuals.csv").read_bytes() == (poisson.directory / "whole/cases" / of_case.name / "residuals.csv").read_bytes()


def test_a_later_solve_of_an_adaptive_run_goes_on(poisson):
    text = """
problem:
  mesh: {generator: box, cells: [16, 16, 16], adaptive: {tolerance: 0.1%, max_cycles: 3}}
  source: "1"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
solver: {precision: double_double, preconditioner: none, tolerance: 1e-24, checkpoint: {iterations: 10}}
output: {picture: false, report: false}
"""
    config = poisson.write(text)
    poisson("run", config, "--output", "whole", "--quiet", code=(0, 2))
    words = poisson.command("run", config, "--output", "out", "--verbose")
    process = subprocess.Popen(words, cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end, solve = time.monotonic() + 60, 0
    while solve < 3 and time.monotonic() < end and process.poll() is None:
        for number in checkpoints(poisson)[-1:]:
            try:
                solve = json.loads((folder(poisson) / f"checkpoint_{number}.json").read_text())["solve"]
            except (FileNotFoundError, json.JSONDecodeError):
                pass
        time.sleep(0.002)
    process.kill()
    process.communicate(timeout=60)
    assert solve >= 3
    done = poisson("run", config, "--output", "out", "--resume", "--verbose", code=(0, 2))
    assert "goes on from the checkpoint" in done.stdout
    expect_same(poisson, "whole", "out")


def test_a_system_from_files_goes_on(poisson):
    poisson("run", poisson.write(CUBE), "--set", "problem.mesh.cells=[40, 40, 40]", "--output", "made", "--matrix-out", "a.mtx", "--quiet")
    words = ("solve", "--matrix", "a.mtx", "--rhs", "a_rhs.mtx", "--threads", "1", "--set", "solver.precision=double_double", "--set", "solver.preconditioner=none",
             "--set", "solver.method=cg", "--set", "solver.tolerance=1e-24", "--set", "solver.checkpoint.iterations=10", "--output")
    poisson(*words, "whole", "--quiet")
    assert cut(poisson, poisson.command(*words, "out"), signal.SIGKILL) == -signal.SIGKILL
    assert "goes on from the checkpoint" in poisson(*words, "out", "--resume").stdout
    for name in ("solution.mtx", "solution_low.mtx", "residuals.csv"):
        assert (poisson.directory / "out" / name).read_bytes() == (poisson.directory / "whole" / name).read_bytes()


@pytest.mark.parametrize("given, seconds", [("10 min", "600"), ("90s", "90"), ("1.5 h", "5400"), ("30", "30"), ("'2 min'", "120"), ("2*3", "6")])
def test_times(poisson, given, seconds):
    config = poisson.write(CUBE + f"solver: {{checkpoint: {{every: {given}}}}}\n")
    assert re.search(rf"every: {seconds}\b", poisson("check", config, "--verbose").stdout)


@pytest.mark.parametrize("given", ["0", "-1 s", "10 weeks", "ten min", "[1]", "true", "1e400 s", "min"])
def test_wrong_times(poisson, given):
    config = poisson.write(CUBE + f"solver: {{checkpoint: {{every: {given}}}}}\n")
    assert "solver.checkpoint.every" in poisson("check", config, code=1).stderr


def test_old_parts_are_removed(poisson):
    config = start_and_kill(poisson)
    (folder(poisson) / ".checkpoint_99.json.123-4.part").write_text("a half")
    shutil.copy(folder(poisson) / f"checkpoint_{checkpoints(poisson)[0]}_rank_0.bin", folder(poisson) / "checkpoint_98_rank_7.bin")
    poisson("run", config, "--output", "out", "--resume")
    assert not folder(poisson).exists()
