"""Estimates of published kernels beside their times: python3 run.py BRAID [--write FILE].

Runs each row of published.json on the cpu device with sampled counts (braid ptx --sample --count=DEVICE), and prints
tables in Markdown: every row with its published time, the estimate and what holds it; the errors of each device and
ladder; and what each device's error would be had the two choices of the model been made without it.
"""
import argparse
import datetime
import json
import math
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).parent
# The choices of src/lowering/plan/kernel_estimate.cpp, and others that they are compared with.
NORM, MEMORY_SHARE = 2, 0.9
NORMS = (1, 1.5, 2, 3, 4, math.inf)
MEMORY_SHARES = (0.8, 0.85, 0.9, 0.95, 1)
ISSUED = ("issue", "float units", "integer units", "special units", "f64 units")


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


def other_choice_ms(found, norm, share):
    """The estimate with other choices, from what each unit needs."""
    units = dict(found["unit_ns"])
    latency = units.pop("latency")
    core = max(units.pop(name) for name in ISSUED)
    units["memory"] *= MEMORY_SHARE / share
    times = [core, *units.values()]
    largest = max(times)
    combined = largest if math.isinf(norm) else largest * sum((t / largest)**norm for t in times)**(1 / norm)
    return (found["launch_ns"] + combined + latency) / 1e6


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
    rows = [[row["ladder"], row["of"], f"`{row['kernel']}`", row["device"], row["n"], f"{given:.3g}",
             f"{found['ns'] / 1e6:.3g}", f"{found['ns'] / 1e6 / given:.2f}", found["limiter"]]
            for row, given, found in results]
    rows += [[row["ladder"], row["of"], "none", row["device"], row["n"], f"{published_ms(row):.3g}", "not modelled",
              "", ""] for row in missing]
    return table(["ladder", "published measurements of", "estimate of", "device", "n", "published ms", "estimate ms",
                  "estimate / published", "held by"], rows)


def devices_table(results):
    """Errors by device, also with the choices that suit the other devices best."""
    devices = list(dict.fromkeys(row["device"] for row, _, _ in results))
    choices = [(norm, share) for norm in NORMS for share in MEMORY_SHARES]

    def errors(chosen, choice):
        return [error(other_choice_ms(found, *choice), given) for _, given, found in chosen]

    def score(chosen, choice):
        return statistics.median(errors(chosen, choice))

    rows = []
    for device in devices:
        own = [result for result in results if result[0]["device"] == device]
        others = [result for result in results if result[0]["device"] != device]
        best = min(choices, key=lambda choice: score(others, choice))
        now, then = errors(own, (NORM, MEMORY_SHARE)), errors(own, best)
        rows.append([device, len(own), percent(statistics.median(now)), percent(max(now)),
                     f"{best[0]:g}, {best[1]:g}", percent(statistics.median(then)), percent(max(then))])
    return table(["device", "rows", "median error", "largest", "norm and share of the other devices' rows",
                  "median error with these", "largest"], rows)


def ladders_table(results):
    ladders = {}
    for row, given, found in results:
        ladders.setdefault(row["ladder"], []).append((given, found["ns"] / 1e6))
    return table(["ladder", "rows", "rank correlation"],
                 [[name, len(pairs), f"{rank_correlation(pairs):.3f}"]
                  for name, pairs in ladders.items() if len(pairs) >= 4])


def page(results, missing):
    errors = [error(found["ns"] / 1e6, given) for _, given, found in results]
    text = (HERE / "page.md").read_text()
    for name, value in {
            "DATE": datetime.date.today().isoformat(), "ROWS": rows_table(results, missing),
            "DEVICES": devices_table(results), "LADDERS": ladders_table(results),
            "MEDIAN": percent(statistics.median(errors)), "LARGEST": percent(max(errors)),
            "COUNT": str(len(results))}.items():
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
