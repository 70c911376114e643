#!/usr/bin/env python3
"""Lets calls of runs fail one by one: faults.py PROGRAM [--kind write] [--command run] [--every 1 | --sites] [--folder DIR]

The n-th write, rename, sync, opening for writing or allocation fails, for every n that an undisturbed run has (tests/fuzz/fault_shim.c). After each
fault: the program has ended by itself, with exit code 3 and one message, or with 0 and complete results; no file under its final name is
half-written; earlier results are there, or new ones; the same command then gives what an undisturbed one gives. A wrong one keeps its folder.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

import kills
from kills import Fault, complete, files, require, results

KINDS = ("write", "rename", "sync", "open", "allocation")
CASE = """
problem:
  mesh: {cells: [6, 5, 4]}
  coefficient: "1 + k*x"
  source: "x*y"
  boundary: [{ids: all, type: dirichlet, value: "z"}]
parameters: {k: 1}
backend: cpu
sweep: {parameters.k: [1, 2]}
"""
# Open MPI waits for ever, or ends by a fault of its own, where a file or memory of its own is missing; those that draw do so without memory.
CARELESS_MPI = "libmpi,libopen-,libpmix,mca_,libevent"
CARELESS = "libfontconfig,libexpat,libfreetype,libcairo.," + CARELESS_MPI
SHIM = pathlib.Path(__file__).with_name("fault_shim.c")


def build_shim(folder):
    """The library that lets calls fail; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None
    library = folder / "fault_shim.so"
    subprocess.run([compiler, "-O1", "-g", "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], check=True)
    return library


class Faults:
    def __init__(self, program, folder, mpirun=None):
        self.program, self.folder = program, folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        self.shim = build_shim(self.folder)
        (folder / "case.yaml").write_text(CASE)
        self.commands = {
            "run": ["run", "case.yaml"],
            "matrix_out": ["run", "case.yaml", "--set", "output.picture=false", "--matrix-out"],
            "sweep": ["sweep", "case.yaml", "--jobs", "1"],
        }
        if mpirun:
            self.commands["ranks"] = ["run", "case.yaml"]
        self.mpirun = mpirun
        self.reference = {}

    def start(self, command, output, *more, **fault):
        """Runs the command; `fault` is what the shim is told, without FAULT_."""
        settings = {"FAULT_" + key.upper(): str(value) for key, value in fault.items()}
        if fault:
            (self.folder / "counts").write_bytes(bytes(8 * len(KINDS)))
            settings["FAULT_COUNTS"] = str(self.folder / "counts")
        preload = ["env", f"LD_PRELOAD={self.shim}"] if fault else []
        launcher = [self.mpirun, "--oversubscribe", "-n", "2"] if command == "ranks" else []
        matrix = [output + ".mtx"] if command == "matrix_out" else []
        process = subprocess.Popen([*launcher, *preload, self.program, *self.commands[command], *matrix, "--output", output, *more],
                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env=os.environ | settings | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                                                "OMPI_MCA_pml": "ob1", "OMP_NUM_THREADS": "2"})
        try:
            _, error = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Fault("it does not end") from None
        return process.returncode, error

    def matrix_files(self, output):
        return [path for path in (self.folder / (output + ".mtx"), self.folder / (output + "_rhs.mtx")) if path.exists()]

    def remove(self, output):
        shutil.rmtree(self.folder / output, ignore_errors=True)
        for path in self.matrix_files(output):
            path.unlink(missing_ok=True)

    def count(self, command, kind, **more):
        """How many calls of the kind an undisturbed one makes."""
        output = "reference_" + command
        self.remove(output)
        code, error = self.start(command, output, kind=kind, **more)
        require(code == 0, f"{command} fails by itself: {error}")
        self.reference[command] = results(self.folder / output)
        return struct.unpack(f"{len(KINDS)}q", (self.folder / "counts").read_bytes())[KINDS.index(kind)]

    def sites(self, command, **more):
        """Numbers of allocations, one of each place in the program (with all that have called it) that makes some."""
        stacks = self.folder / "stacks"
        stacks.unlink(missing_ok=True)
        self.count(command, "allocation", stacks=stacks, **more)
        first = {}
        for place, number in struct.iter_unpack("QQ", stacks.read_bytes()):
            first.setdefault(place, number)
        return sorted(first.values())

    @staticmethod
    def require_kept(earlier):
        """Earlier results are whole; or there is a new record, which names what is neither there nor new; or there is no record any more."""
        for record in (path for path in earlier if path.name in ("result.json", "sweep.json")):
            if not record.exists():
                continue
            gone = [path.name for path in earlier if path.parent == record.parent and not path.exists()]
            if record.read_bytes() == earlier[record]:
                require(not gone, f"the record is the earlier one, and {gone} are gone")
            else:
                told = json.loads(record.read_text())
                unwritten = {entry["file"] for entry in told.get("files_failed", [])}
                # The file of a series goes with the solution.
                require(all(name in unwritten or name.endswith(".pvd") for name in gone), f"{gone} are gone, and the record tells {unwritten}")

    def fail(self, command, kind, number, again=False, check_again=True, **more):
        """One fault, over earlier results with `again`. Returns how it ended, in words; Fault where something is wrong."""
        output = f"out_{command}_{kind}_{number}"
        out = self.folder / output
        told = f"{kind} {number} of {command}{' over earlier results' if again else ''}{' ' + str(more) if more else ''}"
        self.remove(output)
        (self.folder / "trace").unlink(missing_ok=True)
        earlier = {}
        if again:
            shutil.copytree(self.folder / ("reference_" + command), out)
            earlier = {path: path.read_bytes() for path in files(out)}
        error = ""
        try:
            code, error = self.start(command, output, *(["--overwrite"] if again else []), kind=kind, at=number, trace=self.folder / "trace",
                                     **{"except": CARELESS if kind == "allocation" else CARELESS_MPI}, **more)
            require(not kills.processes_in(self.folder), f"still running: {kills.processes_in(self.folder)}")
            require(code in (0, 3), f"exit code {code}")
            lines = [line for line in error.splitlines() if line.startswith("poisson: error: ")]
            if code == 3 and command != "ranks":
                # A case that cannot open its log tells that beside what the sweep tells of it.
                require(len(lines) == 1 or (command == "sweep" and len(lines) == 2), f"{len(lines)} messages")
                require("internal error" not in error and len(lines[0]) > len("poisson: error: "), "no clear message")
            for path in [*(files(out) if out.exists() else []), *self.matrix_files(output)]:
                complete(path)
            if command == "matrix_out" and code == 0:
                require((self.folder / (output + ".mtx")).read_bytes() == (self.folder / "reference_matrix_out.mtx").read_bytes(), "the matrix differs")
            left = [path.name for path in out.rglob(".*.part")]
            # Where the program ends by force the next run removes them.
            require(not left or kind == "allocation", f"left over: {left}")
            if code == 0:
                require(results(out) == self.reference[command], "exit code 0, but results differ")
            elif again:
                self.require_kept(earlier)
            if check_again or left:
                then, error_then = self.start(command, output, *(["--overwrite"] if out.exists() or command == "matrix_out" else []))
                require(then == 0, f"it does not go on: {error_then}")
                require(results(out) == self.reference[command], "results differ from those of an undisturbed one: " + ", ".join(
                    key for key in {*results(out), *self.reference[command]} if results(out).get(key) != self.reference[command].get(key)))
                left = [path.name for path in out.rglob(".*") if path.is_file()]
                require(not left, f"left over at the end: {left}")
        except (Fault, ValueError, xml.ParseError) as fault:
            trace = self.folder / "trace"
            raise Fault(f"{told}: {fault}; its folder is {out}\n{error}" + ("".join(trace.read_text().splitlines(True)[:16]) if trace.exists() and kind == "allocation" else "")) from fault
        self.remove(output)
        if (self.folder / "trace").exists() and (self.folder / "trace").read_text().startswith("spared"):
            return "spared: in a library that does not look whether it has what it asks for"
        first = next((line for line in error.splitlines() if line.startswith("poisson: error: ")), error.strip().split("\n")[0])
        return f"exit {code}: " + re.sub(r"out_\w+|\d+", "N", first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--command", action="append")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--sites", action="store_true", help="of allocations one from each place")
    parser.add_argument("--forever", action="store_true", help="all later calls of the kind fail, too")
    parser.add_argument("--again", action="store_true", help="over earlier results")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="poisson-faults-"))
    faults = Faults(options.program, folder, shutil.which("mpirun"))
    wrong = total = 0
    more = ({"forever": 1} if options.forever else {}) | ({"rank": options.rank} if options.rank is not None else {})
    for command in options.command or faults.commands:
        for kind in options.kind or KINDS:
            n = faults.count(command, kind, **more)
            numbers = faults.sites(command, **more) if options.sites and kind == "allocation" else range(1, n + 1)
            numbers = [number for number in numbers if number >= options.first][::options.every]
            print(f"{command}: {n} calls of the kind {kind}, {len(numbers)} of them fail", flush=True)
            ends = collections.Counter()
            for number in numbers:
                total += 1
                try:
                    ends[faults.fail(command, kind, number, options.again, kind != "allocation", **more)] += 1
                except Fault as fault:
                    wrong += 1
                    print("FAULT", fault, flush=True)
            for end, times in ends.most_common():
                print(f"  {times:6} {end}", flush=True)
    print(f"{total - wrong} of {total} faults are survived")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
