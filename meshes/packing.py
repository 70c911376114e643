"""Makes packing.mha: the cubic cell of a face-centred packing of spheres that just touch, 24^3 voxels of 50 micrometres."""

import pathlib
import zlib

N, SPACING = 24, 5e-5
CENTRES = [(x / 2, y / 2, z / 2) for x in range(3) for y in range(3) for z in range(3) if (x + y + z) % 2 == 0]


def label(i, j, k):
    """2 in a sphere, whose radius is half of the distance of neighbours, sqrt(2) / 4; else 1."""
    return 2 if any(sum(((c + 0.5) / N - m)**2 for c, m in zip((i, j, k), centre)) < 1 / 8 for centre in CENTRES) else 1


voxels = zlib.compress(bytes(label(i, j, k) for k in range(N) for j in range(N) for i in range(N)), 9)
header = f"""ObjectType = Image
NDims = 3
BinaryData = True
BinaryDataByteOrderMSB = False
CompressedData = True
CompressedDataSize = {len(voxels)}
TransformMatrix = 1 0 0 0 1 0 0 0 1
Offset = {SPACING / 2} {SPACING / 2} {SPACING / 2}
ElementSpacing = {SPACING} {SPACING} {SPACING}
DimSize = {N} {N} {N}
ElementType = MET_UCHAR
ElementDataFile = LOCAL
"""
pathlib.Path(__file__).with_name("packing.mha").write_bytes(header.encode() + voxels)
