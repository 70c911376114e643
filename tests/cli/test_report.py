"""report.html: the results as a page that needs no other file."""

import html.parser
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import CUBE, SLOWLY

VOID = {"meta", "img", "br"}


class Page(html.parser.HTMLParser):
    """The text of a page by its elements; fails where they are not balanced or refer to something outside."""

    def __init__(self, path):
        super().__init__()
        self.path, self.open, self.text, self.links, self.images, self.tables = path, [], "", [], [], []
        self.source = path.read_text()
        self.feed(self.source)
        self.close()
        assert self.open == [], f"{path}: not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in ("link", "iframe", "object", "base"), tag
        assert not any(name.startswith("on") for name in attributes), attributes
        for name in ("src", "href"):
            if name in attributes:
                value = attributes[name]
                if name == "src":
                    assert value.startswith("data:image/png;base64,")
                    self.images.append(value)
                else:
                    assert "//" not in value and ":" not in value and not value.startswith("/"), value
                    self.links.append(value)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"{self.path}: </{tag}>"

    def handle_data(self, data):
        if "style" in self.open or "script" in self.open:
            assert "@import" not in data and "url(" not in data and "fetch(" not in data
            return
        self.text += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def table(self, *head):
        """Its rows by their first cell, of the table whose head begins so."""
        found = [t for t in self.tables if t[0][:len(head)] == list(head)]
        assert len(found) == 1, head
        return {row[0]: row[1:] for row in found[0][1:]}


def page(poisson, directory="out"):
    return Page(poisson.directory / directory / "report.html")


def test_page_of_a_run(poisson):
    poisson.write(CUBE + """
output:
  quantities: {half: "max / 2"}
  probes: [{name: middle, at: [0.5, 0.5, 0.5]}]
  lines: [{name: axis, from: [0, 0, 0], to: [1, 1, 1]}]
""")
    poisson("run", "case.yaml", "--output", "out", "--quiet")
    record, report = poisson.record(), page(poisson)
    assert "report.html" in record["files"]
    assert "converged" in report.text and "u = 0 on the whole boundary" in report.text
    assert "3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)" in report.text
    quantities = report.table("name", "value")
    assert next(iter(quantities)) == "half"  # the user's own first
    for name in ("max", "half", "probe.middle", "flux.0"):
        assert float(quantities[name][0]) == pytest.approx(record["quantities"][name], rel=1e-6)
    assert f"{record['errors']['l2']:.6g}" in report.text
    assert "8 × 8 × 8 cells" in report.text and "trilinear" in report.text
    if "solution.png" in record["files"]:
        assert len(report.images) == 2  # the solution and the line; the residuals are drawn by the page
    for name in report.links:
        assert (poisson.directory / "out" / name).is_file(), name
    assert "output:" in report.source and "generator: box" in report.text


def test_texts_of_the_user_have_no_effect(poisson):
    poisson.write(CUBE + """
output: {quantities: {odd: "max < 2 && min > -1"}}
# <script>alert(1)</script> <img src=x onerror=alert(1)>
""")
    poisson("run", "case.yaml", "--output", "out", "--quiet")
    report = page(poisson)  # fails where markup of the configuration has become markup of the page
    assert "<script>alert(1)</script>" in report.text and "max < 2 && min > -1" in report.text


def test_no_page_where_none_is_wanted(poisson):
    poisson.write(CUBE)
    poisson("run", "case.yaml", "--output", "out", "--quiet", "--set", "output.report=false")
    assert "report.html" not in os.listdir(poisson.directory / "out") and "report.html" not in poisson.record()["files"]


def test_page_of_a_run_that_does_not_converge(poisson):
    poisson.write(CUBE + "solver: {preconditioner: none, max_iterations: 2, tolerance: 1e-14}\n")
    poisson("run", "case.yaml", "--output", "out", "--quiet", "--set", "problem.source=exp(x)*y", "--set", "problem.exact=null", code=2)
    report = page(poisson)
    assert "max_iterations" in report.text and poisson.record()["reason"] in report.text


def test_page_of_an_interrupted_run(poisson):
    poisson.write(CUBE.replace("[8, 8, 8]", "[48, 48, 48]") + SLOWLY)
    process = subprocess.Popen(poisson.command("run", "case.yaml", "--output", "out", "--set", "problem.source=exp(x)*y",
                                               "--set", "problem.exact=null"), cwd=poisson.directory, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.split()[:1] == ["convert"]:
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in page(poisson).text


def test_page_of_a_solve(poisson):
    (poisson.directory / "a.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2\n2 1 -1\n2 2 2\n")
    poisson("solve", "--matrix", "a.mtx", "--output", "out", "--quiet")
    report = page(poisson)
    assert "a.mtx" in report.text and "A u = b" in report.text and "cells" not in report.text


def test_page_of_a_sweep(poisson):
    poisson.write(CUBE + """
sweep:
  problem.mesh.cells: [[4, 4, 4], [8, 8, 8], [16, 16, 16]]
  problem.element.order: [1, 2]
  matrix.format: [csr, cod_sell]
""")
    poisson("sweep", "case.yaml", "--output", "out", "--quiet")
    record = json.loads((poisson.directory / "out/sweep.json").read_text())
    report = page(poisson)
    assert "report.html" in record["files"] and "all converged" in report.text
    cases = report.table("case", "cells", "order", "format")
    assert list(cases) == [str(i) for i in range(12)]
    assert "class=\"sortable\"" in report.source
    for i, row in cases.items():
        assert row[2] in ("csr", "cod_sell") and row[3] == "converged"
        assert float(row[9]) == pytest.approx(record["cases"][int(i)]["result"]["errors"]["l2"], rel=1e-3)
    for order in (1, 2):  # of the L2 error, which comes first
        fitted = re.search(rf"order = {order}, format = csr: order ([0-9.]+)", report.text)
        assert float(fitted[1]) == pytest.approx(order + 1, abs=0.15)
    for name in ("iterations against unknowns", "seconds in all against unknowns", "bytes of host memory against unknowns"):
        assert name in report.text
    for axis in record["axes"]:
        assert f"Quantities against {axis}" in report.text or axis == "matrix.format"  # which changes none
    assert "Richardson extrapolation" in report.text and "exponent" in report.text
    pages = [link for link in report.links if link.endswith("/report.html")]
    assert len(set(pages)) == 12
    for link in report.links:
        assert (poisson.directory / "out" / link).exists(), link
        if link.endswith("report.html") and "/" in link:
            assert "converged" in Page(poisson.directory / "out" / link).text


def test_page_of_a_sweep_with_a_case_that_fails(poisson):
    poisson.write(CUBE + "sweep: {problem.coefficient: ['1', '-1', '2']}\n")
    poisson("sweep", "case.yaml", "--output", "out", "--quiet", code=1)
    report = page(poisson)
    assert "2 converged" in report.text and "Case 1 failed" in report.text
    assert report.table("case", "coefficient")["1"][1] == "failed"
