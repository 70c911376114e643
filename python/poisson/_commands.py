"""run, sweep, check."""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import (EnvironmentError, InputError, Interrupted, NotConverged, NotConvergedWarning, PoissonError, PoissonWarning,
                      messages_in)
from ._program import Ended, Progress, run_program
from ._result import Result
from ._table import read_table
from ._yaml import flow, to_yaml

if TYPE_CHECKING:
    from ._table import AnyTable

Configuration = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def run(configuration: Configuration, *, output: Union[str, "os.PathLike[str]", None] = None, overwrite: bool = False,
        backend: Optional[str] = None, threads: Optional[int] = None, progress: Progress = True, must_converge: bool = False,
        launcher: Sequence[str] = (), **sets: Any) -> Result:
    """Solves a problem, as `poisson run` does.

    configuration: the path of a YAML file, or a dict with the same keys. A dict is given to the program as YAML on standard input
        (with a launcher in a temporary file); relative files in it count from the current directory, and the results have it as configuration.yaml.
    output: the folder of the results. Without it, it is that of the configuration; of a dict that names none it is a temporary one,
        which is removed with the result.
    overwrite: replaces the results of an earlier run there.
    backend, threads: as the options of the program.
    progress: True prints what the program tells, line by line; False prints nothing; a function is called with each line.
    must_converge: raises NotConverged where the solver does not reach its tolerance, in place of a NotConvergedWarning.
    launcher: a command before the program, as ["mpirun", "-n", "4"].
    sets: other values of keys; two underscores stand for a dot (`problem__element__order=2`), or `**{"problem.element.order": 2}`.

    Errors: InputError with key path and place; EnvironmentError; Interrupted. Ctrl-C (KeyboardInterrupt) stops the program, which
    may write what it has before; a second one does not wait for that.
    """
    call = _Call("run", configuration, sets, output, "result.json", [*_option("overwrite", overwrite), *_option("backend", backend),
                                                                     *_option("threads", threads)])
    ended = call.start(progress, launcher)
    directory = call.results(ended)
    result = None
    if directory is not None:
        result = Result(directory)
        if call.temporary is not None:
            result._own_directory()
    else:
        call.remove_temporary()
    if ended.exit_code in (0, 2) and result is not None:
        if ended.exit_code == 2:
            _tell_not_converged(f"{result.status}: {result.record['reason']}", result, must_converge)
        return result
    raise call.error(ended, result)


def sweep(configuration: Configuration, axes: Optional[Mapping[str, Any]] = None, *, output: Union[str, "os.PathLike[str]", None] = None,
          overwrite: bool = False, resume: bool = False, jobs: Optional[int] = None, gpus: Union[int, str, None] = None,
          backend: Optional[str] = None, threads: Optional[int] = None, progress: Progress = True, must_converge: bool = False,
          **sets: Any) -> "AnyTable":
    """Solves a problem for every combination of values, as `poisson sweep` does.

    axes: what stands under `sweep` in a configuration, as {"parameters.k": [1, 2, 3]}; None: what is there.
    jobs, gpus, resume: as the options of the program. Other parameters are those of `run`.

    Returns a row for each case, as in sweep.csv: swept keys, status, quantities; a pandas.DataFrame where pandas is installed, else a
    Table. `attrs["directory"]` is the folder, in which `poisson.load(folder / row_directory)` reads a case; of a dict without `output`
    it is a temporary one, which is removed when Python ends. `attrs` also has extrapolation, statistics and the like from
    sweep.json. A case that failed has the status "failed" and an `error`; the table comes nevertheless, with a PoissonWarning.

    Errors: as of `run`, also where all cases failed; `must_converge` counts for failed cases, too.
    """
    if axes is not None:
        if "sweep" in sets:
            raise TypeError("axes and sweep are the same; give one of them")
        sets = {**sets, "sweep": axes}
    call = _Call("sweep", configuration, sets, output, "sweep.json",
                 [*_option("overwrite", overwrite), *_option("resume", resume), *_option("jobs", jobs), *_option("gpus", gpus),
                  *_option("backend", backend), *_option("threads", threads)])
    ended = call.start(progress, ())
    directory = call.results(ended)
    if directory is None:
        call.remove_temporary()
        raise call.error(ended, None)
    if call.temporary is not None:
        atexit.register(shutil.rmtree, call.temporary, ignore_errors=True)
    with open(directory / "sweep.json", encoding="utf-8") as file:
        record = json.load(file)
    attrs = {"directory": str(directory), **{key: value for key, value in record.items() if key not in ("cases", "axes")}}
    table = read_table(directory / "sweep.csv", attrs)
    if ended.exit_code == 0:
        return table
    if ended.exit_code == 2:
        _tell_not_converged("some cases of the sweep are not converged; the column 'status' tells which", table, must_converge)
        return table
    error = call.error(ended, table)
    failed = sum(case["status"] == "failed" for case in record["cases"])
    if must_converge or isinstance(error, Interrupted) or not record["complete"] or failed in (0, len(record["cases"])):
        raise error
    warnings.warn(str(error), PoissonWarning, stacklevel=2)
    return table


def check(configuration: Configuration, *, ranks: Optional[int] = None, backend: Optional[str] = None, verbose: bool = False,
          **sets: Any) -> str:
    """Validates a configuration without solving it, as `poisson check` does.

    Returns what the program tells: unknowns, memory, boundaries, materials; with `verbose` the configuration with all defaults, too.
    Errors: InputError with key path and place, EnvironmentError.
    """
    call = _Call("check", configuration, sets, None, None, [*_option("ranks", ranks), *_option("backend", backend), *_option("verbose", verbose)])
    ended = call.start(False, ())
    if ended.exit_code != 0:
        raise call.error(ended, None)
    return ended.out


def load(directory: Union[str, "os.PathLike[str]"]) -> Result:
    """The results of a run that is over. Errors: FileNotFoundError, where no run has written there."""
    return Result(directory)


def _option(name: str, value: Any) -> List[str]:
    return [] if value is None or value is False else ["--" + name] if value is True else ["--" + name, str(value)]


def _settings(sets: Mapping[str, Any]) -> List[str]:
    words: List[str] = []
    for name, value in sets.items():
        words += ["--set", name.replace("__", ".") + "=" + flow(value)]
    return words


def _names_directory(configuration: Mapping[str, Any], sets: Mapping[str, Any]) -> bool:
    output = configuration.get("output")
    return (isinstance(output, Mapping) and "directory" in output) or any(name.replace("__", ".") == "output.directory" for name in sets)


class _Call:
    """A call of a command of the program."""

    def __init__(self, command: str, configuration: Configuration, sets: Mapping[str, Any], output: Union[str, "os.PathLike[str]", None],
                 record: Optional[str], options: List[str]) -> None:
        if isinstance(output, Mapping):
            raise TypeError("output names the folder of the results; keys of that section are set as output__picture=False")
        self.text: Optional[str] = None
        self.temporary: Optional[pathlib.Path] = None
        self.record = record
        if isinstance(configuration, Mapping):
            self.text = to_yaml(configuration)
            file = "-"
        else:
            file = os.fspath(configuration)
            if file.startswith("-"):
                file = "./" + file
        words = _settings(sets)
        if isinstance(configuration, Mapping) and record and output is None and not _names_directory(configuration, sets):
            self.temporary = pathlib.Path(tempfile.mkdtemp(prefix="poisson-"))
            output = self.temporary
        self.directory = None if output is None else pathlib.Path(output)
        self.arguments = [command, file, *words, *options, *_option("output", output)]
        self.before: Dict[pathlib.Path, int] = {}
        if self.directory is not None and record:
            self._note(self.directory / record)

    def _note(self, path: pathlib.Path) -> None:
        try:
            self.before[path] = path.stat().st_mtime_ns
        except OSError:
            pass

    def start(self, progress: Progress, launcher: Sequence[str]) -> Ended:
        try:
            if self.text is not None and launcher:
                ended = self._from_file(self.text, progress, launcher)
            else:
                ended = run_program(self.arguments, text=self.text, progress=progress, launcher=launcher)
        except BaseException:
            self.remove_temporary()
            raise
        for message in messages_in(ended.err)[1]:
            warnings.warn(message if self.text is None else message.replace("<stdin>", "<dict>"), PoissonWarning, stacklevel=3)
        return ended

    def _from_file(self, text: str, progress: Progress, launcher: Sequence[str]) -> Ended:
        """A launcher gives standard input to one process alone, so that all read the dict from a file for the moment."""
        with tempfile.NamedTemporaryFile("w", prefix="poisson-", suffix=".yaml", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            arguments = [file.name if word == "-" else word for word in self.arguments]
            ended = run_program(arguments, progress=progress, launcher=launcher)
            return ended._replace(err=ended.err.replace(file.name, "<stdin>"))

    def remove_temporary(self) -> None:
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def results(self, ended: Ended) -> Optional[pathlib.Path]:
        """The folder with the record that this call has written, or None. Where it is, the program tells at its end."""
        told = re.findall(r"^  files:? +(.*?)/ ", ended.out, re.MULTILINE)
        directory = pathlib.Path(told[-1]) if told else self.directory
        if directory is None or self.record is None:
            return None
        path = directory / self.record
        if not path.is_file() or (not told and self.before.get(path) == path.stat().st_mtime_ns):
            return None
        return directory

    def error(self, ended: Ended, result: Any) -> PoissonError:
        code = ended.exit_code
        errors = messages_in(ended.err)[0]
        message = "\n".join(errors) or ended.err.strip()
        if code < 0:
            return EnvironmentError(f"the program was killed by {signal.Signals(-code).name}" + (f": {message}" if message else ""), code, result)
        if code == 1:
            return InputError(message, code, result, self.text)
        if code in (130, 143, 129):
            return Interrupted(message or f"interrupted by {signal.Signals(code - 128).name}", code, result)
        if code in (0, 2):
            message = "the program wrote no record" + (f": {message}" if message else "")
        return EnvironmentError(message or f"the program ended with exit code {code}", code, result)


def _tell_not_converged(message: str, result: Any, must_converge: bool) -> None:
    if must_converge:
        raise NotConverged(message, 2, result)
    warnings.warn(message, NotConvergedWarning, stacklevel=3)
