"""Tables: of pandas where it is installed, else a plain class with the few operations that both have."""

from __future__ import annotations

import csv
import html
import importlib.util
import pathlib
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Sequence, Union

if TYPE_CHECKING:
    import numpy.typing
    import pandas

    AnyTable = Union["Table", pandas.DataFrame]


class Table:
    """Columns by name, as numpy arrays: what `poisson.sweep` gives where pandas is not installed.

    `table["max"]`, `len(table)` (rows), `table.columns`, `table.attrs` and `table.to_dict("records")` are as in pandas.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], attrs: Mapping[str, Any] = {}) -> None:
        self._columns: Dict[str, List[Any]] = {name: list(values) for name, values in columns.items()}
        self.attrs: Dict[str, Any] = dict(attrs)

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> "numpy.typing.NDArray[Any]":
        """A column: numbers, NaN where there is none, or texts. KeyError names the columns that there are."""
        import numpy

        if name not in self._columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self._columns)}")
        return numpy.array(self._columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def to_dict(self, orient: str = "records") -> List[Dict[str, Any]]:
        """The rows, each as a dict."""
        if orient != "records":
            raise ValueError("a plain table gives 'records'; pandas has others")
        return [dict(zip(self._columns, row)) for row in zip(*self._columns.values())]

    def __repr__(self) -> str:
        rows = [self.columns, *([str(value) for value in row] for row in zip(*self._columns.values()))]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths)) for row in rows)

    def _repr_html_(self) -> str:
        def row(cells: Sequence[Any], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in zip(*self._columns.values()))
        return f"<table><thead>{row(self.columns, 'th')}</thead><tbody>{body}</tbody></table>"


def _values(texts: List[str]) -> List[Any]:
    """Whole numbers where all are, else numbers with NaN for what is empty, else texts."""
    try:
        return [int(text) for text in texts]
    except ValueError:
        pass
    try:
        return [float(text or "nan") for text in texts]
    except ValueError:
        return list(texts)


def read_table(path: pathlib.Path, attrs: Mapping[str, Any] = {}) -> "AnyTable":
    """A file of comma-separated values as a DataFrame, or as a Table where there is no pandas."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = {name: _values([row[i] for row in rows]) for i, name in enumerate(header)}
    if importlib.util.find_spec("pandas") is None:
        return Table(columns, attrs)
    import pandas

    frame = pandas.DataFrame(columns)
    frame.attrs.update(attrs)
    return frame
