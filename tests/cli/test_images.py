"""Images as meshes: voxels are cells, labels are materials."""

import gzip
import json
import os
import re
import struct
import zlib

import numpy as np
import pytest
import yaml
from conftest import read_solution

from ranks import LIBRARY, MPIRUN, on_ranks

with_ranks = pytest.mark.skipif(MPIRUN is None or not LIBRARY.exists(), reason="no mpirun, or built without MPI")

# Twelve voxels in x would be read as one of twelve components where sizes are less than 10; these are.
SHAPE = (5, 6, 4)  # x, y, z
SPACING = (0.5, 0.25, 1)
NRRD_TYPES = {"u1": "uchar", "i1": "signed char", "u2": "ushort", "i2": "short", "u4": "uint", "i4": "int", "f4": "float", "f8": "double"}
META_TYPES = {"u1": "MET_UCHAR", "i1": "MET_CHAR", "u2": "MET_USHORT", "i2": "MET_SHORT", "u4": "MET_UINT", "i4": "MET_INT", "f4": "MET_FLOAT", "f8": "MET_DOUBLE"}
RAW_TYPES = {"u1": "uint8", "i1": "int8", "u2": "uint16", "i2": "int16", "u4": "uint32", "i4": "int32", "f4": "float32", "f8": "float64"}
VTK_TYPES = {"u1": "UInt8", "i1": "Int8", "u2": "UInt16", "i2": "Int16", "u4": "UInt32", "i4": "Int32", "f4": "Float32", "f8": "Float64"}


def labels(largest=3, shape=SHAPE, seed=2):
    """By x, y, z; every label is there."""
    values = np.random.default_rng(seed).integers(0, largest + 1, shape)
    values.flat[:2] = 0, largest
    return values


def in_order(values, kind):
    """Bytes with x fastest. `kind`: "<u2" and the like."""
    return values.transpose(2, 1, 0).astype(kind).tobytes()


def write_raw(path, values, kind="<u1"):
    path.write_bytes(in_order(values, kind))
    return {"image": path.name, "cells": list(values.shape), "type": RAW_TYPES[kind[1:]], "spacing": list(SPACING)} | ({"big_endian": True} if kind[0] == ">" else {})


def write_vti(path, values, kind="<u1", of="CellData", name="label", first=(0, 0, 0), origin=(0, 0, 0), direction=None, spacing=SPACING):
    """Points are the centres of voxels: the first one half a voxel from the corner."""
    n = [s + (of == "CellData") for s in values.shape]
    extent = " ".join(f"{f} {f + m - 1}" for f, m in zip(first, n))
    data = " ".join(str(v) for v in values.transpose(2, 1, 0).ravel())
    turned = f' Direction="{direction}"' if direction else ""
    path.write_text(f"""<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian">
<ImageData WholeExtent="{extent}" Origin="{' '.join(map(str, origin))}" Spacing="{' '.join(map(str, spacing))}"{turned}>
<Piece Extent="{extent}"><{of}><DataArray type="{VTK_TYPES[kind[1:]]}" Name="{name}" format="ascii">{data}</DataArray></{of}></Piece>
</ImageData></VTKFile>
""")
    return {"image": path.name}


def half(spacing=SPACING):
    return [s / 2 for s in spacing]


def write_nrrd(path, values, kind="<u1", encoding="raw", detached=False, extra="", geometry=None):
    geometry = geometry or (f"space: left-posterior-superior\nspace directions: ({SPACING[0]},0,0) (0,{SPACING[1]},0) (0,0,{SPACING[2]})\n"
                            f"space origin: ({','.join(map(str, half()))})\n")
    data = in_order(values, kind)
    data = gzip.compress(data) if encoding == "gzip" else data
    header = (f"NRRD0004\n# made by a test\ntype: {NRRD_TYPES[kind[1:]]}\ndimension: 3\n{geometry}sizes: {' '.join(map(str, values.shape))}\n"
              f"kinds: domain domain domain\nendian: {'big' if kind[0] == '>' else 'little'}\nencoding: {encoding}\n{extra}")
    if detached:
        path.with_suffix(".bin").write_bytes(data)
        path.write_text(header + f"data file: {path.with_suffix('.bin').name}\n")
    else:
        path.write_bytes((header + "\n").encode() + data)
    return {"image": path.name}


def write_meta(path, values, kind="<u1", compressed=False, detached=False, extra=""):
    data = in_order(values, kind)
    data = zlib.compress(data) if compressed else data
    header = (f"ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = {kind[0] == '>'}\nCompressedData = {compressed}\n"
              f"{extra}Offset = {' '.join(map(str, half()))}\nCenterOfRotation = 0 0 0\nElementSpacing = {' '.join(map(str, SPACING))}\n"
              f"DimSize = {' '.join(map(str, values.shape))}\nElementType = {META_TYPES[kind[1:]]}\n")
    if detached:
        path.with_suffix(".bin").write_bytes(data)
        path.write_text(header + f"ElementDataFile = {path.with_suffix('.bin').name}\n")
    else:
        path.write_bytes((header + "ElementDataFile = LOCAL\n").encode() + data)
    return {"image": path.name}


def tiff(pages, kind="<u1", tags=(), deflate=False):
    """The bytes of a file with these pages, by y, x, one strip each."""
    order = kind[0]
    out = bytearray((b"MM" if order == ">" else b"II") + struct.pack(order + "HI", 42, 0))
    link = 4
    for page in pages:
        data = page.astype(kind).tobytes()
        data = zlib.compress(data) if deflate else data
        place = len(out)
        out += data + b"\0" * (len(data) % 2)
        entries = {256: (4, page.shape[1]), 257: (4, page.shape[0]), 258: (3, 8 * page.astype(kind).itemsize), 259: (3, 8 if deflate else 1), 262: (3, 1),
                   273: (4, place), 277: (3, 1), 278: (4, page.shape[0]), 279: (4, len(data)), 339: (3, {"u": 1, "i": 2, "f": 3}[kind[1]])} | dict(tags)
        struct.pack_into(order + "I", out, link, len(out))
        out += struct.pack(order + "H", len(entries))
        for tag, (number, value) in sorted(entries.items()):
            out += struct.pack(order + "HHI", tag, number, 1) + (struct.pack(order + "HH", value, 0) if number == 3 else struct.pack(order + "I", value))
        link = len(out)
        out += b"\0" * 4
    return bytes(out)


def planes(values):
    return [values[:, :, z].T for z in range(values.shape[2])]


def write_tiff(path, values, kind="<u1", **options):
    path.write_bytes(tiff(planes(values), kind, **options))
    return {"image": path.name, "spacing": list(SPACING)}


CONDITIONS = [{"ids": [0], "type": "dirichlet", "value": "0"}, {"ids": [1], "type": "dirichlet", "value": "1"}, {"ids": "all", "type": "neumann", "value": "0"}]


def case(mesh, **more):
    problem = {"mesh": mesh, "coefficient": "2", "boundary": CONDITIONS} | more
    return yaml.safe_dump({"problem": problem, "solver": {"tolerance": 1e-12}, "output": {"picture": False, "report": False}})


def run(poisson, mesh, *words, output="out", ranks=1, code=0, **more):
    config = poisson.write(case(mesh, **more), output + ".yaml")
    words = ("run", config, "--output", output, "--overwrite", "--quiet", "--backend", "cpu", *words)
    return on_ranks(poisson, ranks, *words, code=code) if ranks > 1 else poisson(*words, "--threads", "1", code=code)


def cell_data(directory, name):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    data = read_solution(directory)
    return vtk_to_numpy(data.GetCellData().GetArray(name)), data


def point_data(directory, name="u"):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    return vtk_to_numpy(read_solution(directory).GetPointData().GetArray(name))


def materials(poisson, mesh, output="out", **more):
    """By x, y, z; and the box."""
    run(poisson, mesh, output=output, **more)
    values, data = cell_data(poisson.directory / output, "material")
    n = [m - 1 for m in data.GetDimensions()]
    return values.reshape(n[::-1]).transpose(2, 1, 0), data.GetBounds()


BOUNDS = tuple(b for n, s in zip(SHAPE, SPACING) for b in (0, n * s))

READERS = {
    "raw": lambda path, v, kind: write_raw(path.with_suffix(".raw"), v, kind),
    "vti": lambda path, v, kind: write_vti(path.with_suffix(".vti"), v, kind),
    "vti_points": lambda path, v, kind: write_vti(path.with_suffix(".vti"), v, kind, of="PointData", origin=half()),
    "vti_extent": lambda path, v, kind: write_vti(path.with_suffix(".vti"), v, kind, first=(3, 5, 7), origin=[-f * s for f, s in zip((3, 5, 7), SPACING)]),
    "nrrd": lambda path, v, kind: write_nrrd(path.with_suffix(".nrrd"), v, kind),
    "nrrd_gzip": lambda path, v, kind: write_nrrd(path.with_suffix(".nrrd"), v, kind, encoding="gzip"),
    "nhdr": lambda path, v, kind: write_nrrd(path.with_suffix(".nhdr"), v, kind, detached=True),
    "nhdr_gzip": lambda path, v, kind: write_nrrd(path.with_suffix(".nhdr"), v, kind, encoding="gzip", detached=True),
    "mha": lambda path, v, kind: write_meta(path.with_suffix(".mha"), v, kind),
    "mha_zlib": lambda path, v, kind: write_meta(path.with_suffix(".mha"), v, kind, compressed=True),
    "mhd": lambda path, v, kind: write_meta(path.with_suffix(".mhd"), v, kind, detached=True),
    "mhd_zlib": lambda path, v, kind: write_meta(path.with_suffix(".mhd"), v, kind, compressed=True, detached=True),
    "tiff": lambda path, v, kind: write_tiff(path.with_suffix(".tif"), v, kind),
    "tiff_deflate": lambda path, v, kind: write_tiff(path.with_suffix(".tiff"), v, kind, deflate=True),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_finds_the_same(poisson, reader):
    values = labels()
    found, bounds = materials(poisson, READERS[reader](poisson.directory / "scan", values, "<u1"))
    assert np.array_equal(found, values)
    assert bounds == pytest.approx(BOUNDS, abs=1e-15)


@pytest.mark.parametrize("kind", ["<i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4"])
@pytest.mark.parametrize("reader", ["raw", "vti", "nrrd_gzip", "mha_zlib", "tiff"])
def test_every_type_of_labels(poisson, reader, kind):
    values = labels({"1": 127, "2": 32767 if kind[1] == "i" else 65535, "4": 2147483647 if kind[1] == "i" else 2000000000}[kind[2]])
    mesh = READERS[reader](poisson.directory / "scan", values, kind)
    found, _ = materials(poisson, mesh)
    assert np.array_equal(found, values)


@pytest.mark.parametrize("reader, kind", [("raw", "<f4"), ("vti", "<f8"), ("nrrd", ">f8"), ("mha", "<f4"), ("tiff", "<f4"), ("raw", "<u1")])
def test_grey_values_become_labels(poisson, reader, kind):
    grey = labels(200)
    mesh = READERS[reader](poisson.directory / "scan", grey, kind)
    if kind[1] == "f":
        assert "threshold" in run(poisson, mesh, code=1).stderr
    found, _ = materials(poisson, mesh | {"threshold": [50, 128]})
    assert np.array_equal(found, (grey >= 50).astype(int) + (grey >= 128))
    found, _ = materials(poisson, mesh | {"threshold": 128})
    assert np.array_equal(found, grey >= 128)


def test_crop_flip_and_coarsen(poisson):
    values = labels(3, (6, 8, 4))
    mesh = write_raw(poisson.directory / "scan.raw", values)
    found, bounds = materials(poisson, mesh | {"crop": [[1, 5], None, [2, 3]], "flip": ["x", "z"]})
    assert np.array_equal(found, values[1:5, :, 2:3][::-1, :, ::-1])
    assert bounds == pytest.approx((0.5, 2.5, 0, 2, 2, 3))
    found, bounds = materials(poisson, mesh | {"coarsen": 2, "flip": "y"})
    blocks = values[:, ::-1, :].reshape(3, 2, 4, 2, 2, 2).transpose(0, 2, 4, 1, 3, 5).reshape(3, 4, 2, 8)
    assert np.array_equal(found, [[[np.bincount(b).argmax() for b in row] for row in plane] for plane in blocks])
    assert bounds == pytest.approx((0, 3, 0, 2, 0, 4))
    found, _ = materials(poisson, mesh | {"coarsen": [1, 2, 1], "crop": [None, [2, 4], None]})
    assert np.array_equal(found[:, 0, :], np.minimum(values[:, 2, :], values[:, 3, :]))  # of two labels, equally frequent, the lowest
    found, _ = materials(poisson, mesh | {"refinements": 1})
    assert np.array_equal(found, values.repeat(2, 0).repeat(2, 1).repeat(2, 2))
    r = run(poisson, mesh | {"coarsen": [4, 1, 1]}, code=1)
    assert "problem.mesh.coarsen" in r.stderr and "crop: [[0, 4], null, null]" in r.stderr
    assert "problem.mesh.crop[0]" in run(poisson, mesh | {"crop": [[0, 7], None, None]}, code=1).stderr


LAYERS = np.zeros((8, 6, 4), int)
LAYERS[3:, :, :] = 1
LAYERS[:, 4:, :] = 2
BOX = {"cells": [8, 6, 4], "extent": [4, 1.5, 4], "regions": [{"name": "solid", "where": "x > 1.5"}, {"name": "film", "where": "y > 1"}]}
NAMED = {"names": {1: "solid", 2: "film"}}
OF_NAMES = {"coefficient": {"solid": "10", "film": "exp(x)", "default": "1"}, "source": {"film": "2", "default": "0"}}


@pytest.mark.parametrize("words", [(), ("--set", "problem.element.order=2"), ("--set", "matrix.format=csr"), ("--set", "problem.mesh.refinements=1"),
                                   ("--set", "solver.preconditioner=multigrid")], ids=lambda words: words[-1] if words else "plain")
def test_an_image_of_layers_is_a_box_with_regions(poisson, words):
    """To the last bit."""
    run(poisson, BOX, *words, output="box", **OF_NAMES)
    run(poisson, write_vti(poisson.directory / "scan.vti", LAYERS) | NAMED, *words, output="image", **OF_NAMES)
    box, image = poisson.record("box"), poisson.record("image")
    assert image["quantities"] == box["quantities"] and image["quantities"]["volume.film"] == pytest.approx(8)
    for key in ("dofs", "nnz", "matrix"):
        assert {k: v for k, v in image[key].items() if k != "seconds"} == box[key] if isinstance(box[key], dict) else image[key] == box[key]
    assert image["mesh"]["material_names"] == box["mesh"]["material_names"] == {"1": "solid", "2": "film"}
    assert np.array_equal(point_data(poisson.directory / "image"), point_data(poisson.directory / "box"))
    for name in ("material", "coefficient", "flux"):
        assert np.array_equal(cell_data(poisson.directory / "image", name)[0], cell_data(poisson.directory / "box", name)[0])


@pytest.mark.parametrize("direction", [0, 1, 2])
@pytest.mark.parametrize("format", ["half_cds", "matrix_free"])
def test_laminates_are_exact(poisson, direction, format):
    """In series the resistances add up, in parallel the conductances."""
    values = np.zeros((6, 6, 6), int)
    values[tuple(slice(2, None) if d == direction else slice(None) for d in range(3))] = 1
    mesh = write_raw(poisson.directory / "scan.raw", values) | {"spacing": 0.5, "names": {0: "a", 1: "b"}}
    run(poisson, mesh, "--set", f"matrix.format={format}", coefficient={"a": "2", "b": "8"})
    k = 1 / (1 / 3 / 2 + 2 / 3 / 8) if direction == 0 else 2 / 3 + 2 * 8 / 3
    assert poisson.record()["quantities"]["flux.1"] == pytest.approx(-k * 9 / 3, rel=1e-10)


@pytest.mark.parametrize("coefficient", [{0: "1", 1: "1000", 2: "3"}, {0: ["1", "2", "3"], 1: "1e6", 2: ["5", "1", "1"]}], ids=["scalar", "three"])
def test_one_byte_a_cell(poisson, coefficient):
    """matrix_free multiplies from labels: the solution, the flux and the iterations are those of half_cds."""
    shape = (20, 24, 16)
    mesh = write_raw(poisson.directory / "scan.raw", labels(2, shape, seed=5)) | {"spacing": 0.5, "names": {0: "a", 1: "b", 2: "c"}}
    of_names = {"abc"[label]: k for label, k in coefficient.items()}
    for format in ("half_cds", "matrix_free"):
        run(poisson, mesh, "--set", f"matrix.format={format}", "--set", "solver.preconditioner=multigrid", output=format, coefficient=of_names)
    stored, free = poisson.record("half_cds"), poisson.record("matrix_free")
    cells = shape[0] * shape[1] * shape[2]
    assert free["matrix"]["format"] == "matrix_free" and cells < free["matrix"]["bytes"] < cells + 1000
    assert free["solver"]["residual_true"] < 2e-12 and abs(free["solver"]["iterations"] - stored["solver"]["iterations"]) <= 1
    assert free["nnz"] == stored["nnz"]
    assert free["quantities"]["flux.1"] == pytest.approx(stored["quantities"]["flux.1"], rel=1e-9)
    assert np.allclose(point_data(poisson.directory / "matrix_free"), point_data(poisson.directory / "half_cds"), rtol=0, atol=1e-9)
    r = poisson("check", "matrix_free.yaml", "--set", "matrix.format=matrix_free", "--backend", "cpu")
    assert "whose cells have labels and k a table" in r.stdout


@with_ranks
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("words", [(), ("--set", "problem.element.order=2"), ("--set", "matrix.format=csr")], ids=lambda words: words[-1] if words else "plain")
def test_ranks_find_what_one_finds(poisson, words, ranks):
    values = labels(3, (8, 6, 10))
    mesh = write_vti(poisson.directory / "scan.vti", values) if ranks == 2 else write_nrrd(poisson.directory / "scan.nrrd", values)
    mesh |= {"names": {2: "pore"}, "boundaries": [{"name": "inlet", "where": "x < 0.01 && y > 0.7"}]}
    conditions = [{"names": ["inlet"], "type": "dirichlet", "value": "0"}] + [{"ids": [0], "type": "neumann", "value": "0"}] + CONDITIONS[1:]
    more = {"boundary": conditions, "coefficient": {0: "1", 1: "10", "pore": "0.1", 3: "4"}}
    run(poisson, mesh, *words, output="one", **more)
    run(poisson, mesh, *words, output="many", ranks=ranks, **more)
    one, many = poisson.record("one")["quantities"], poisson.record("many")["quantities"]
    assert one.keys() == many.keys() and "volume.pore" in one
    for name in one:
        assert many[name] == pytest.approx(one[name], rel=1e-8, abs=1e-10), name


@with_ranks
def test_a_rank_may_have_one_label_only(poisson):
    values = np.zeros((4, 4, 16), int)
    values[:, :, 8:] = 5
    mesh = write_raw(poisson.directory / "scan.raw", values) | {"names": {0: "low", 5: "high"}}
    more = {"coefficient": {"low": "1", "high": "3"}}
    run(poisson, mesh, output="one", **more)
    run(poisson, mesh, output="many", ranks=2, **more)
    one, many = poisson.record("one")["quantities"], poisson.record("many")["quantities"]
    assert one.keys() == many.keys()
    assert many["flux.1"] == pytest.approx(one["flux.1"], rel=1e-9) and many["volume.high"] == one["volume.high"]


def test_slices_are_a_list_a_pattern_or_a_folder(poisson):
    values = labels(3, (4, 3, 12))
    folder = poisson.directory / "slices"
    folder.mkdir()
    for z, plane in enumerate(planes(values)):
        (folder / f"s{z}.tif").write_bytes(tiff([plane]))  # s10 comes after s9
    for image in ("slices/*.tif", "slices", [f"slices/s{z}.tif" for z in range(12)]):
        found, bounds = materials(poisson, {"image": image, "spacing": [1, 1, 1]})
        assert np.array_equal(found, values) and bounds == (0, 4, 0, 3, 0, 12)
    found, _ = materials(poisson, {"image": [f"slices/s{z}.tif" for z in (3, 1)], "spacing": [1, 1, 1]})
    assert np.array_equal(found, values[:, :, [3, 1]])
    (folder / "s5.tif").write_bytes(tiff([planes(values)[0][:2]]))
    assert "s5.tif: it has another size" in run(poisson, {"image": "slices", "spacing": [1, 1, 1]}, code=1).stderr


def test_a_sweep_and_a_resolved_configuration(poisson):
    values = labels(1, (4, 4, 4))
    mesh = write_raw(poisson.directory / "scan.raw", values) | {"names": {0: "pore", 1: "solid"}}
    config = yaml.safe_load(case(mesh, coefficient={"pore": "1", "solid": "k"})) | {"parameters": {"k": 2}, "sweep": {"parameters.k": [2, 5], "problem.mesh.coarsen": [1, 2]}}
    poisson("sweep", poisson.write(yaml.safe_dump(config)), "--output", "sweep", "--backend", "cpu")
    rows = json.loads((poisson.directory / "sweep/sweep.json").read_text())
    assert len(rows["cases"]) == 4
    poisson("run", poisson.write(yaml.safe_dump(config | {"sweep": {}})), "--output", "first", "--backend", "cpu", "--set", "parameters.k=5", "--set", "problem.mesh.coarsen=2")
    resolved = poisson.directory / "first/resolved.yaml"
    poisson("run", resolved, "--output", "again", "--backend", "cpu")
    assert poisson.record("again")["quantities"] == poisson.record("first")["quantities"]
    assert poisson.record("first")["mesh"]["cells"] == 8


def refused(poisson, mesh, *parts):
    message = run(poisson, mesh, code=1).stderr
    for part in ("problem.mesh", *parts):
        assert part in message, message
    assert re.search(r"out\.yaml:\d+:\d+: ", message), message


NRRD_FAULTS = {
    "turned": ({"geometry": "space: left-posterior-superior\nspace directions: (0,1,0) (1,0,0) (0,0,1)\nspace origin: (0,0,0)\n"}, "space directions"),
    "mirrored": ({"geometry": "space: left-posterior-superior\nspace directions: (-1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\n"}, "mirrored"),
    "ascii": ({"encoding": "ascii"}, "'ascii'"),
    "hex": ({"encoding": "hex"}, "'hex'"),
    "vector": ({"extra": "kinds: 3-vector domain domain\n"}, "twice"),
    "skip": ({"extra": "byte skip: 5\n"}, "byte skip"),
    "mins": ({"geometry": "axis mins: 0 0 0\n"}, "axis mins"),
    "unknown": ({"extra": "shape: round\n"}, "'shape'"),
}


@pytest.mark.parametrize("fault", NRRD_FAULTS)
def test_what_nrrd_says_is_honoured_or_refused(poisson, fault):
    options, part = NRRD_FAULTS[fault]
    refused(poisson, write_nrrd(poisson.directory / "scan.nrrd", labels(), **options), "scan.nrrd", part)


def test_a_vector_image_is_no_image_of_labels(poisson):
    mesh = write_nrrd(poisson.directory / "scan.nrrd", labels())
    path = poisson.directory / "scan.nrrd"
    path.write_bytes(path.read_bytes().replace(b"kinds: domain", b"kinds: 3-vector"))
    refused(poisson, mesh, "'3-vector'")


@pytest.mark.parametrize("extra, part", [("TransformMatrix = 0 1 0 1 0 0 0 0 1\n", "TransformMatrix"), ("TransformMatrix = -1 0 0 0 1 0 0 0 1\n", "mirrored"),
                                         ("ElementNumberOfChannels = 3\n", "ElementNumberOfChannels"), ("HeaderSize = 8\n", "HeaderSize"), ("Wings = 2\n", "'Wings'")])
def test_what_meta_images_say_is_honoured_or_refused(poisson, extra, part):
    refused(poisson, write_meta(poisson.directory / "scan.mha", labels(), extra=extra), "scan.mha", part)
    assert np.array_equal(materials(poisson, write_meta(poisson.directory / "scan.mha", labels(), extra="TransformMatrix = 1 0 0 0 1 0 0 0 1\n"))[0], labels())


@pytest.mark.parametrize("tags, part", [([(274, (3, 4))], "Orientation 4"), ([(262, (3, 0))], "PhotometricInterpretation 0"), ([(277, (3, 3))], "colours"),
                                        ([(322, (4, 16))], "tiles"), ([(259, (3, 7))], "method 7"), ([(258, (3, 12))], "12 bits")])
def test_what_tiff_files_say_is_honoured_or_refused(poisson, tags, part):
    refused(poisson, write_tiff(poisson.directory / "scan.tif", labels(), tags=tags), "scan.tif", part)


def test_what_vti_files_say_is_honoured_or_refused(poisson):
    path = poisson.directory / "scan.vti"
    refused(poisson, write_vti(path, labels(), direction="0 1 0 1 0 0 0 0 1"), "Direction")
    refused(poisson, write_vti(path, labels(), spacing=(-1, 1, 1)), "spacing")
    refused(poisson, write_vti(path, labels()) | {"array": "colour"}, "problem.mesh.array", "'colour'", "label")
    refused(poisson, write_vti(path, labels() - 1, "<i1"), "problem.mesh.threshold", "-1")
    text = write_vti(path, labels()) and path.read_text()
    array = re.search("<DataArray.*</DataArray>", text)[0]
    path.write_text(text.replace(array, array + array.replace('"label"', '"other"')))
    refused(poisson, {"image": path.name}, "label, other")
    assert np.array_equal(materials(poisson, {"image": path.name, "array": "label"})[0], labels())


def test_what_is_missing_is_asked_for(poisson):
    raw = write_raw(poisson.directory / "scan.raw", labels())
    for key in ("cells", "type", "spacing"):
        refused(poisson, {k: v for k, v in raw.items() if k != key}, "problem.mesh." + key, "scan.raw")
    refused(poisson, {k: v for k, v in write_tiff(poisson.directory / "scan.tif", labels()).items() if k != "spacing"}, "problem.mesh.spacing")
    refused(poisson, {"image": "no.vti"}, "no.vti")
    refused(poisson, {"image": "no*.tif", "spacing": [1, 1, 1]}, "pattern")
    (poisson.directory / "scan.png").write_bytes(b"png")
    refused(poisson, {"image": "scan.png"}, "scan.png", ".nrrd")
    refused(poisson, raw | {"generator": "hyper_cube"}, "problem.mesh.image")
    refused(poisson, {"image": "scan.vti", "cells": [1, 1, 1]}, "problem.mesh.cells")
    refused(poisson, {"cells": [1, 1, 1], "coarsen": 2}, "problem.mesh.coarsen")


def test_names_that_no_voxel_has_are_told(poisson):
    mesh = write_raw(poisson.directory / "scan.raw", labels()) | {"names": {1: "pore", 9: "glue"}}
    assert "no voxel has the label 9 (glue)" in poisson("check", poisson.write(case(mesh, coefficient={"pore": "1", "default": "2"}))).stdout
    refused(poisson, mesh | {"names": {1: "pore", 2: "pore"}}, "problem.mesh.names")
    refused(poisson, mesh | {"names": {-1: "pore"}}, "problem.mesh.names")


def test_files_of_another_length_are_refused(poisson):
    values = labels(300, (4, 4, 4))
    for name, write in (("scan.raw", write_raw), ("scan.nrrd", write_nrrd), ("scan.mha", write_meta)):
        mesh = write(poisson.directory / name, values, "<u2")
        whole = (poisson.directory / name).read_bytes()
        for data in (whole[:-1], whole + b"\0", whole + b"\0" * 128):
            (poisson.directory / name).write_bytes(data)
            refused(poisson, mesh, name, "128 bytes")
    mesh = write_nrrd(poisson.directory / "scan.nrrd", values, encoding="gzip")
    whole = (poisson.directory / "scan.nrrd").read_bytes()
    (poisson.directory / "scan.nrrd").write_bytes(whole[:-12])
    refused(poisson, mesh, "compressed data")
    (poisson.directory / "scan.nrrd").write_bytes(whole.replace(b"sizes: 4 4 4", b"sizes: 4 4 3"))
    refused(poisson, mesh, "more than the 48 bytes")
    (poisson.directory / "scan.nrrd").write_bytes(whole.replace(b"sizes: 4 4 4", b"sizes: 4000 4000 4000"))
    refused(poisson, mesh, "more than can be compressed")


@pytest.mark.parametrize("reader", ["vti", "nrrd_gzip", "mha_zlib", "tiff", "tiff_deflate"])
def test_damaged_files_are_refused_or_read(poisson, reader):
    """Never a crash, and never a hang: exit code 0 or 1."""
    mesh = READERS[reader](poisson.directory / "scan", labels(3, (3, 3, 2)), "<u1")
    path = poisson.directory / mesh["image"]
    whole, random = path.read_bytes(), np.random.default_rng(7)
    config = poisson.write(case(mesh))
    for i in range(12):
        damaged = bytearray(whole)
        if i % 3 == 0:
            damaged = damaged[:random.integers(1, len(whole))]
        else:
            for _ in range(i):
                damaged[random.integers(0, len(damaged))] = random.integers(0, 256)
        path.write_bytes(damaged)
        poisson("check", config, code=(0, 1), timeout=60)


def test_check_tells_phases_and_what_they_join(poisson):
    values = np.zeros((4, 4, 4), int)
    for place in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (0, 3, 3)):
        values[place] = 7
    mesh = write_raw(poisson.directory / "scan.raw", values) | {"names": {0: "solid", 7: "path"}}
    out = poisson("check", poisson.write(case(mesh))).stdout
    rows = {m[1]: m[0].split() for m in re.finditer(r"^# +\d+ +(solid|path) .*%.*$", out, re.MULTILINE)}
    assert rows["path"][1:] == ["7", "path", "9", "0.140625", "2", "88.89", "%", "1", "(88.89", "%)", "none", "none"]
    assert rows["solid"][3:6] == ["55", "0.859375", "1"] and "none" not in rows["solid"]
    assert "fraction" in out and "components" in out


def test_check_lists_the_largest_of_many_phases(poisson):
    mesh = write_raw(poisson.directory / "scan.raw", np.arange(1000).reshape(10, 10, 10), "<u2")
    assert "and 960 more" in poisson("check", poisson.write(case(mesh))).stdout


@pytest.mark.parametrize("ending", ["vti", "mha"])
def test_only_vti_and_tiff_load_vtk(poisson, ending):
    """And no image loads deal.II."""
    mesh = {"vti": write_vti, "mha": write_meta}[ending](poisson.directory / f"scan.{ending}", labels())
    config = poisson.write(case(mesh))
    log = poisson.directory / "loaded"
    poisson("check", config, env=os.environ | {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)})
    text = "".join(path.read_text(errors="replace") for path in poisson.directory.glob("loaded.*"))
    assert ("libpoisson_image" in text) == ("libvtkIOXML" in text) == (ending == "vti")
    assert "libpoisson_dealii" not in text


@pytest.mark.parametrize("ranks", [1, pytest.param(3, marks=with_ranks)])
def test_a_path_one_voxel_wide_conducts(poisson, ranks):
    """Between the ends of x, through void; an island is left out. A name without voxels is no error."""
    island = np.zeros((8, 5, 5), int)
    island[:, 1, 1] = 1
    island[3:5, 3:5, 4] = 1
    mesh = write_raw(poisson.directory / "scan.raw", island) | {"spacing": 1, "names": {0: "pore", 1: "solid", 9: "glue"}}
    run(poisson, mesh, ranks=ranks, coefficient={"pore": "void", "solid": "2", "glue": "1"})
    r = poisson.record()
    assert r["mesh"]["cells"] == 8 and r["mesh"]["left_out"] == {"parts": 1, "cells": 4, "volume": pytest.approx(4)}
    assert r["quantities"]["flux.1"] == pytest.approx(-2 / 8, rel=1e-9)


def test_a_cut_path_is_told(poisson):
    values = np.zeros((6, 3, 3), int)
    values[:, 1, 1] = 1
    values[3, 1, 1] = 0
    mesh = write_raw(poisson.directory / "scan.raw", values) | {"names": {0: "pore", 1: "solid"}}
    run(poisson, mesh, coefficient={"pore": "void", "solid": "2"})
    assert any("no part of what is left of the mesh joins two" in w for w in poisson.record()["warnings"])
    assert poisson.record()["quantities"]["flux.1"] == pytest.approx(0, abs=1e-12)
