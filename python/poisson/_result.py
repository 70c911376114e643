"""What a run has written."""

from __future__ import annotations

import html
import importlib
import json
import os
import pathlib
import shutil
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from ._table import read_table

if TYPE_CHECKING:
    import numpy.typing

    from ._table import AnyTable

# VTK's reader of each kind of file.
_READERS = {".vti": ("vtkIOXML", "vtkXMLImageDataReader"), ".vtr": ("vtkIOXML", "vtkXMLRectilinearGridReader"),
            ".vtu": ("vtkIOXML", "vtkXMLUnstructuredGridReader"), ".vts": ("vtkIOXML", "vtkXMLStructuredGridReader"),
            ".vtp": ("vtkIOXML", "vtkXMLPolyDataReader"), ".pvti": ("vtkIOXML", "vtkXMLPImageDataReader"),
            ".pvtr": ("vtkIOXML", "vtkXMLPRectilinearGridReader"), ".pvtu": ("vtkIOXML", "vtkXMLPUnstructuredGridReader"),
            ".hdf": ("vtkIOHDF", "vtkHDFReader")}


class Picture(os.PathLike):  # type: ignore[type-arg]
    """A picture that a run has drawn. A notebook shows it; it can be opened as a path can."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()

    def __repr__(self) -> str:
        return f"Picture({str(self.path)!r})"


class Result:
    """The results of a run, read from its folder. A notebook shows the page of the run.

    directory: the folder with its files.
    record: all that `result.json` has; docs/result_json.md explains every key.
    """

    def __init__(self, directory: Union[str, "os.PathLike[str]"]) -> None:
        """Reads the record in `directory`. Errors: FileNotFoundError, where no run has written there."""
        self.directory = pathlib.Path(directory)
        with open(self.directory / "result.json", encoding="utf-8") as file:
            self.record: Dict[str, Any] = json.load(file)

    def _own_directory(self) -> None:
        """The folder is removed with this object."""
        weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)

    @property
    def status(self) -> str:
        """How the solve ended: converged, max_iterations, stagnated, breakdown, diverged or interrupted."""
        return str(self.record["status"])

    @property
    def converged(self) -> bool:
        """Whether the solver reached its tolerance."""
        return self.status == "converged"

    @property
    def quantities(self) -> Dict[str, Any]:
        """Numbers by name, such as `quantities["flux.0"]`; empty where u is not finite. Units follow from those of the configuration."""
        return dict(self.record.get("quantities", {}))

    @property
    def errors(self) -> Dict[str, float]:
        """Norms of the error, where `problem.exact` is given: l2, h1_seminorm, linf."""
        return dict(self.record.get("errors", {}))

    @property
    def iterations(self) -> int:
        """Iterations of the solver."""
        return int(self.record["solver"]["iterations"])

    @property
    def unknowns(self) -> int:
        """The number of unknowns."""
        return int(self.record["dofs"])

    @property
    def warnings(self) -> List[str]:
        """The warnings of the run."""
        return list(self.record.get("warnings", []))

    def dataset(self, file: Optional[str] = None) -> Any:
        """A file of this run as an object of VTK; without a name the solution. Errors: ImportError without VTK, KeyError where there is
        no such file."""
        if file is None:
            # On several ranks there are pieces, and a file that names them.
            file = next((name for start in (".p", ".") for name in self.record["files"]
                         if name.startswith("solution" + start) and pathlib.Path(name).suffix in _READERS), None)
            if file is None:
                raise KeyError("this run has written no solution (output.vtk.enabled)")
        path = self.directory / file
        if path.suffix not in _READERS or not path.exists():
            raise KeyError(f"no file '{file}' that VTK reads; there are {', '.join(self.record['files'])}")
        module, name = _READERS[path.suffix]
        try:
            reader = getattr(importlib.import_module("vtkmodules." + module), name)()
        except ImportError as error:
            raise ImportError("fields are read by VTK's Python module: apt install python3-vtk9, or pip install vtk") from error
        reader.SetFileName(str(path))
        reader.Update()
        if reader.GetErrorCode() != 0:
            raise OSError(f"VTK cannot read {path}")
        return reader.GetOutputDataObject(0)

    def field(self, name: str = "u", file: Optional[str] = None) -> "numpy.typing.NDArray[Any]":
        """A field as an array: of length n at points or cells, or of shape (n, components). Of a box, points and cells are ordered
        with x fastest. `file` is another file of this run, as "plane_NAME.vts". Errors: those of dataset(), KeyError with the names
        that there are."""
        data = self.dataset(file)
        support = importlib.import_module("vtkmodules.util.numpy_support")
        names = []
        for attributes in (data.GetPointData(), data.GetCellData()):
            found = attributes.GetArray(name)
            if found is not None:
                return _array(support.vtk_to_numpy(found))
            names += [attributes.GetArrayName(i) for i in range(attributes.GetNumberOfArrays())]
        raise KeyError(f"no field {name!r}; there are {', '.join(names)}")

    def points(self, file: Optional[str] = None) -> "numpy.typing.NDArray[Any]":
        """The points at which u is given, as an array of shape (n, 3); in the order of field("u")."""
        import numpy

        data = self.dataset(file)
        if data.IsA("vtkPointSet"):
            return _array(importlib.import_module("vtkmodules.util.numpy_support").vtk_to_numpy(data.GetPoints().GetData()))
        return numpy.array([data.GetPoint(i) for i in range(data.GetNumberOfPoints())])

    def table(self, file: str) -> "AnyTable":
        """A table that this run has written, as "residuals.csv" or "line_axis.csv": a DataFrame, or a Table without pandas."""
        if not file.endswith(".csv") or file not in self.record["files"]:
            raise KeyError(f"no table {file!r}; there are {', '.join(name for name in self.record['files'] if name.endswith('.csv'))}")
        return read_table(self.directory / file)

    @property
    def pictures(self) -> Dict[str, Picture]:
        """All pictures by the names of their files, without .png."""
        return {name[:-4]: Picture(self.directory / name) for name in self.record["files"] if name.endswith(".png")}

    @property
    def picture(self) -> Optional[Picture]:
        """The picture of the solution; None where there is none."""
        return self.pictures.get("solution")

    @property
    def report(self) -> Optional[pathlib.Path]:
        """The page of the run, for a browser; None where there is none."""
        path = self.directory / "report.html"
        return path if "report.html" in self.record["files"] and path.exists() else None

    def _repr_html_(self) -> str:
        if self.report is None:
            rows = "".join(f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(str(value))}</td></tr>"
                           for name, value in {"status": self.status, **self.quantities}.items())
            return f"<table>{rows}</table>"
        # A page of its own, whose styles and scripts do not meet those of the notebook.
        page = html.escape(self.report.read_text(encoding="utf-8"), quote=True)
        return f'<iframe sandbox="allow-scripts" style="width: 100%; height: 40em; border: 0" srcdoc="{page}"></iframe>'

    def __repr__(self) -> str:
        counts = f", {self.unknowns} unknowns, {self.iterations} iterations" if "dofs" in self.record and "solver" in self.record else ""
        return f"Result({self.status}{counts}, {str(self.directory)!r})"


def _array(values: Any) -> "numpy.typing.NDArray[Any]":
    """A copy, which outlives VTK's object."""
    import numpy

    return numpy.array(values)
