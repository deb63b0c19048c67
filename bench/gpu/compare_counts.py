"""What the cpu device counts of a kernel beside what the GPU's own counters say.

    compare_counts.py COUNTS NAME <CSV

COUNTS has, by graph, what `braid run --count --json` says of it; the CSV is that of
`ncu --csv --print-units base`. Ends with 1 where the kernel is not in both.
"""

import csv
import json
import sys

# What of the counts each counter of the GPU may be held against.
PEERS = [
    ("gpu__time_duration.sum", "estimate, ns", lambda c: c["estimate"]["ns"]),
    ("launch__registers_per_thread", "registers", lambda c: c["estimate"]["registers"]),
    ("sm__inst_executed.sum", "instructions of PTX",
     lambda c: sum(c["counts"]["instructions"].values())),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "wavefronts of shared memory",
     lambda c: c["counts"]["issued_shared_wavefronts"]),
    ("lts__t_sectors.sum", "sectors of global memory", lambda c: c["counts"]["global_sectors"]),
    ("dram__bytes.sum", "bytes of memory", lambda c: c["estimate"]["memory_bytes"]),
]


def measured(lines, kernel):
    """By metric, of the first launch of the kernel."""
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    values = {}
    for row in csv.DictReader(lines[head:]):
        if row["Kernel Name"].startswith(kernel):
            values.setdefault(row["Metric Name"], float(row["Metric Value"].replace(",", "")))
    return values


def main():
    counts, name = json.loads(open(sys.argv[1]).read()), sys.argv[2]
    (kernel,) = counts[name]
    values = measured(sys.stdin.read().splitlines(), kernel["kernel"])
    print(f"{name}: {kernel['kernel']}")
    for metric, what, count in PEERS:
        counted, seen = count(kernel), values.get(metric)
        ratio = f"{seen / counted:8.3f}" if seen and counted else f"{'-':>8}"
        print(f"  {what:<28}{counted:>18.0f}{'-' if seen is None else f'{seen:.0f}':>18}{ratio}"
              f"  {metric}")
    return not values


if __name__ == "__main__":
    sys.exit(main())
