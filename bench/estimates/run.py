"""Estimates of published kernels beside their times: python3 run.py BRAID [--write FILE].

Runs each row of published.json on the cpu device with sampled counts (braid ptx --sample --count=DEVICE), and prints
tables in Markdown: every row with its published time, the estimate and what holds it; the errors of each device and
ladder, and of the two halves: the sources that the model was made with, and those that it was not. The table of times
that were measured on an H100 is that of MEASURED, estimates included: they were made before the measurement.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).parent
MEASURED = HERE.parent / "results" / "h100-2026-11-27" / "steps.json"

# Of the kernels of hgemm_steps.cu: side and depth of a tile, threads, stages in dynamic shared memory, bytes that
# pad a row of it, results.
STEPS = {
    "elements_1": (32, 16, 256, 0, 0, "f32"), "elements_2": (64, 16, 256, 0, 0, "f32"),
    "small_swizzled": (64, 32, 256, 1, 0, "f32"), "small_3_stages": (64, 32, 256, 3, 0, "f32"),
    "square_3_stages": (128, 32, 256, 3, 0, "f32"),
    "fine_by_elements": (128, 32, 512, 1, 0, "f32"), "fine_by_elements_swizzled": (128, 32, 512, 1, 0, "f32"),
    "fine_at_once": (128, 32, 512, 1, 0, "f32"), "fine_2_stages": (128, 32, 512, 2, 0, "f32"),
    "coarse_2_stages": (128, 32, 128, 2, 0, "f32"),
    "large_by_registers": (128, 64, 128, 1, 0, "f16"), "large_at_once": (128, 64, 128, 1, 0, "f16"),
    "large_padded": (128, 64, 128, 1, 16, "f16"), "large_swizzled": (128, 64, 128, 1, 0, "f16"),
    "large_wide": (128, 64, 128, 1, 0, "f16"), "large_2_stages": (128, 64, 128, 2, 0, "f16"),
}
# Of wgmma_steps.cu: rows and columns of a tile, threads, stages, blocks of a cluster, other bytes of shared memory,
# whether 128 blocks do all tiles.
GROUP_STEPS = {
    "small_at_once": (64, 64, 128, 1, 1, 0, False), "square_at_once": (128, 128, 128, 1, 1, 0, False),
    "square_ring": (128, 128, 256, 5, 1, 0, False), "wide_ring": (128, 256, 384, 4, 1, 0, False),
    "wide_in_order": (128, 256, 384, 4, 1, 0, True), "wide_few_arrivals": (128, 256, 384, 4, 1, 0, True),
    "wide_cluster": (128, 256, 384, 4, 2, 0, True), "wide_bulk_store": (128, 256, 384, 3, 2, 65536, True),
}


def launch(row):
    """File, grid, block, shared bytes and arguments of a row."""
    n = row["n"]
    kernel = row["kernel"]
    square = [f"zero:f32:{n * n}"] * 3 + [f"i32:{n}"]
    if kernel in ("rows_along_x", "columns_along_x"):
        x, y = map(int, row.get("block", "32,32").split(","))
        return "sgemm.cu", f"{n // x},{n // y}", f"{x},{y}", 0, square
    if kernel == "shared_tiles":
        return "sgemm.cu", f"{n // 32},{n // 32}", "32,32", 0, square
    tiles = {"column_tiles": (64, 512), "square_tiles": (128, 256), "wide_tiles_8": (128, 256),
             "wide_tiles_16": (128, 256), "warp_tiles": (128, 128)}
    if kernel in tiles:
        side, threads = tiles[kernel]
        return "sgemm.cu", f"{n // side},{n // side}", str(threads), 0, square
    if kernel == "half_tiles":
        half = [f"zero:f16:{n * n}"] * 3 + [f"i32:{n}"]
        return "hgemm.cu", f"{n // 256},{n // 128}", "256", 73728, half
    if kernel == "group_tiles":
        maps = [f"tensormap:zero:f16:{n * n}:{n}x{n}::64x{rows}:128B" for rows in (128, 256)]
        return "group_tiles.ptx", str(n // 128 * (n // 256)), "288", 196608, [*maps, f"zero:f16:{n * n}", f"i32:{n}"]
    if kernel in STEPS:
        side, k, threads, stages, padding, result = STEPS[kernel]
        blocks = n // side
        grid = f"{blocks},{blocks}" if kernel.startswith("elements") else str(blocks * blocks)
        return ("hgemm_steps.cu", grid, str(threads), stages * 2 * side * (2 * k + padding),
                [*[f"zero:f16:{n * n}"] * 2, f"zero:{result}:{n * n}", f"i32:{n}"])
    if kernel in GROUP_STEPS:
        rows, cols, threads, stages, cluster, more, persistent = GROUP_STEPS[kernel]
        blocks = 128 if persistent else n // rows * (n // cols)
        maps = [f"tensormap:zero:f16:{n * n}:{n}x{n}::64x{box}:128B" for box in (rows, cols // cluster, 64)]
        return ("wgmma_steps.cu", str(blocks), str(threads), stages * (rows + cols) * 128 + more,
                [*maps, f"zero:f16:{n * n}", f"i32:{n}"])
    if kernel == "add_vectors":
        return ("stream.cu", str((n // 4 + 255) // 256), "256", 0,
                [f"zero:f32:{n}"] * 3 + [f"i32:{n // 4}"])
    if kernel == "sum_vector":
        blocks = 132 * 4
        return "stream.cu", str(blocks), "512", 0, [f"zero:f32:{n}", f"zero:f32:{blocks}", f"i32:{n // 4}"]
    raise ValueError(kernel)


def published_ms(row):
    n = row["n"]
    unit, value = next(iter(row["published"].items()))
    if unit == "ms":
        return value
    if unit == "gbs":
        return 4 * n / value / 1e6
    return 2 * n**3 / value / (1e6 if unit == "gflops" else 1e9)


def estimate(braid, row):
    file, grid, block, shared, arguments = launch(row)
    command = [braid, "ptx", str(HERE / file), "--entry", row["kernel"], "--grid", grid, "--block", block,
               "--shared", str(shared), f"--count={row['device']}", "--sample", "--json"]
    for argument in arguments:
        command += ["--arg", argument]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{row['kernel']}: exit code {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)["counts"][0]["estimate"]


def error(ms, given):
    """0.25 for a quarter too slow, and for a quarter too fast."""
    return max(ms / given, given / ms) - 1


def rank_correlation(pairs):
    def ranks(values):
        order = sorted(range(len(values)), key=values.__getitem__)
        return [order.index(i) for i in range(len(values))]

    a, b = ranks([p[0] for p in pairs]), ranks([p[1] for p in pairs])
    n = len(pairs)
    return 1 - 6 * sum((x - y)**2 for x, y in zip(a, b)) / (n * (n * n - 1))


def table(head, rows):
    lines = [" | ".join(head), " | ".join("---" for _ in head)] + [" | ".join(map(str, row)) for row in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def percent(value):
    return f"{100 * value:.0f} %"


def rows_table(results, missing):
    rows = [[row["ladder"], "held out" if row.get("held_out") else "", row["of"], f"`{row['kernel']}`", row["device"], row["n"], f"{given:.3g}",
             f"{found['ns'] / 1e6:.3g}", f"{found['ns'] / 1e6 / given:.2f}", found["limiter"]]
            for row, given, found in results]
    rows += [[row["ladder"], "", row["of"], "none", row["device"], row["n"], f"{published_ms(row):.3g}", "not modelled",
              "", ""] for row in missing]
    return table(["ladder", "half", "published measurements of", "estimate of", "device", "n", "published ms", "estimate ms",
                  "estimate / published", "held by"], rows)


def devices_table(results):
    devices = list(dict.fromkeys(row["device"] for row, _, _ in results))
    rows = []
    for device in devices:
        errors = [error(found["ns"] / 1e6, given) for row, given, found in results if row["device"] == device]
        rows.append([device, len(errors), percent(statistics.median(errors)), percent(max(errors))])
    return table(["device", "rows", "median error", "largest"], rows)


def ladders_table(results):
    ladders = {}
    for row, given, found in results:
        half = "held out" if row.get("held_out", False) else "made with"
        ladders.setdefault((row["ladder"], half), []).append((given, found["ns"] / 1e6))
    return table(["ladder", "half", "rows", "median error", "rank correlation"],
                 [[name, half, len(pairs), percent(statistics.median(error(ms, given) for given, ms in pairs)),
                   f"{rank_correlation(pairs):.3f}"]
                  for (name, half), pairs in ladders.items() if len(pairs) >= 4])


def halves_table(results):
    """Rows that the model was made with, and those that were left out of it."""
    rows = []
    for name, held_out in (("made with", False), ("held out", True)):
        errors = [error(found["ns"] / 1e6, given)
                  for row, given, found in results if row.get("held_out", False) == held_out]
        rows.append([name, len(errors), percent(statistics.median(errors)), percent(max(errors))])
    return table(["half", "rows", "median error", "largest"], rows)


def measured_table(rows):
    """Rows of MEASURED, by the last run."""
    cells = []
    for row in rows:
        measured, found = row["measured_us"][-1], row["estimate_us"]
        cells.append([f"`{row['kernel']}`", row["n"], f"{measured / 1e3:.3g}", f"{found / 1e3:.3g}",
                      f"{found / measured:.2f}", row["limiter"]])
    return table(["kernel", "n", "measured ms", "estimate ms", "estimate / measured", "held by"], cells)


def page(results, missing):
    errors = [error(found["ns"] / 1e6, given) for _, given, found in results]
    measured = json.loads(MEASURED.read_text())
    measured_errors = [error(row["estimate_us"], row["measured_us"][-1]) for row in measured]
    text = (HERE / "page.md").read_text()
    for name, value in {
            "DATE": datetime.date.today().isoformat(), "ROWS": rows_table(results, missing),
            "DEVICES": devices_table(results), "LADDERS": ladders_table(results), "HALVES": halves_table(results),
            "MEDIAN": percent(statistics.median(errors)), "LARGEST": percent(max(errors)),
            "COUNT": str(len(results)), "MEASURED": measured_table(measured),
            "MEASURED_COUNT": str(len(measured)), "MEASURED_MEDIAN": percent(statistics.median(measured_errors)),
            "MEASURED_LARGEST": percent(max(measured_errors))}.items():
        text = text.replace(f"@{name}@", value.rstrip())
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("braid")
    parser.add_argument("--write", help="a file for the page, else it is printed")
    arguments = parser.parse_args()
    results, missing, known = [], [], {}
    for row in json.loads((HERE / "published.json").read_text()):
        if "kernel" not in row:
            missing.append(row)
            continue
        key = (row["kernel"], row["device"], row["n"])
        if key not in known:
            known[key] = estimate(arguments.braid, row)
        results.append((row, published_ms(row), known[key]))
    text = page(results, missing)
    if arguments.write:
        pathlib.Path(arguments.write).write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
