"""Makes foam.mha: one period of a foam of closed cells, bubbles on a body-centred cubic lattice, 32^3 voxels of 0.1 mm."""

import pathlib
import zlib

N, SPACING, RADIUS = 32, 1e-4, 0.36
CENTRES = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)] + [(0.5, 0.5, 0.5)]


def label(i, j, k):
    """2 in a bubble, else 1."""
    return 2 if any(sum(((c + 0.5) / N - m)**2 for c, m in zip((i, j, k), centre)) < RADIUS**2 for centre in CENTRES) else 1


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
pathlib.Path(__file__).with_name("foam.mha").write_bytes(header.encode() + voxels)
