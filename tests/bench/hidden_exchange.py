#!/usr/bin/env python3
"""How much of the messages between devices is hidden behind other kernels, from a timeline of kernel_timeline.cpp:

    hidden_exchange.py timeline.csv [SECONDS]

Looks at the last SECONDS (0.2) of kernels. NCCL's kernels on the stream that has other kernels too are the sums over ranks; those
on a stream of their own are exchanges.
"""
import collections
import csv
import sys


def overlap(interval, busy, start):
    """Nanoseconds of the interval that kernels of `busy`, sorted, cover; the search begins at `start`."""
    begin, end = interval
    covered, reached = 0, begin
    while start < len(busy) and busy[start][1] <= begin:
        start += 1
    for at in range(start, len(busy)):
        if busy[at][0] >= end:
            break
        low, high = max(busy[at][0], reached), min(busy[at][1], end)
        if high > low:
            covered += high - low
            reached = high
    return covered, start


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    devices = collections.defaultdict(list)
    with open(sys.argv[1], newline="") as file:
        for row in csv.DictReader(file):
            devices[row["device"]].append((int(row["begin"]), int(row["end"]), row["stream"], "nccl" in row["kernel"].lower()))
    last = max(kernel[1] for kernels in devices.values() for kernel in kernels)
    first = last - 1e9 * float(sys.argv[2] if len(sys.argv) == 3 else 0.2)
    for device, kernels in sorted(devices.items()):
        kernels = sorted(kernel for kernel in kernels if kernel[0] >= first)
        others = [(begin, end) for begin, end, _, nccl in kernels if not nccl]
        computing = {stream for _, _, stream, nccl in kernels if not nccl}
        total = kernels[-1][1] - kernels[0][0]
        busy, reached = 0, 0
        for begin, end, *_ in kernels:
            busy += max(end - max(begin, reached), 0)
            reached = max(reached, end)
        print(f"device {device}: {total / 1e6:.2f} ms, {100 * busy / total:.1f} % of them with a kernel")
        for what, chosen in (("exchanges", [k for k in kernels if k[3] and k[2] not in computing]),
                             ("sums", [k for k in kernels if k[3] and k[2] in computing])):
            if not chosen:
                continue
            hidden, at = 0, 0
            for kernel in chosen:
                covered, at = overlap(kernel[:2], others, at)
                hidden += covered
            length = sum(end - begin for begin, end, *_ in chosen)
            print(f"  {len(chosen)} {what}: {length / len(chosen) / 1e3:.1f} us each, {100 * length / total:.2f} % of the time; "
                  f"{100 * hidden / length:.1f} % hidden, not hidden {(length - hidden) / len(chosen) / 1e3:.1f} us each")


if __name__ == "__main__":
    main()
