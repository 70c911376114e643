"""Makes two images of spheres in a cubic cell: packing.mha, spheres on a face-centred lattice that just touch, 24^3 voxels of 50
micrometres; and foam.mha of the gallery, bubbles on a body-centred lattice, 32^3 voxels of 0.1 mm."""

import pathlib
import zlib

FACE_CENTRED = [(x / 2, y / 2, z / 2) for x in range(3) for y in range(3) for z in range(3) if (x + y + z) % 2 == 0]
BODY_CENTRED = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)] + [(0.5, 0.5, 0.5)]


def write(path, n, spacing, centres, radius_squared):
    """Label 2 in a sphere, else 1."""

    def label(i, j, k):
        return 2 if any(sum(((c + 0.5) / n - m)**2 for c, m in zip((i, j, k), centre)) < radius_squared for centre in centres) else 1

    voxels = zlib.compress(bytes(label(i, j, k) for k in range(n) for j in range(n) for i in range(n)), 9)
    header = f"""ObjectType = Image
NDims = 3
BinaryData = True
BinaryDataByteOrderMSB = False
CompressedData = True
CompressedDataSize = {len(voxels)}
TransformMatrix = 1 0 0 0 1 0 0 0 1
Offset = {spacing / 2} {spacing / 2} {spacing / 2}
ElementSpacing = {spacing} {spacing} {spacing}
DimSize = {n} {n} {n}
ElementType = MET_UCHAR
ElementDataFile = LOCAL
"""
    path.write_bytes(header.encode() + voxels)


here = pathlib.Path(__file__).resolve().parent
write(here / "packing.mha", 24, 5e-5, FACE_CENTRED, 1 / 8)  # the radius is half of the distance of neighbours, sqrt(2) / 4
write(here.parent / "configs/gallery/foam.mha", 32, 1e-4, BODY_CENTRED, 0.36**2)
