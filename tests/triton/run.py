"""Triton's PTX for three architectures on the cpu device: values against float64, under the sanitizer.

Usage: run.py BRAID [NAME...]

A case that is to be refused, or that is wrong on purpose, must be, in the words that it expects. Needs
the packages of `scripts/setup.sh soak`, and no GPU.
"""

import collections
import pathlib
import sys
import tempfile

import descriptors
import others
import products
import rows
import tensor_memory
from harness import compile_ptx, run_ptx, wrong_values


def outcome(braid, case, capability, directory):
    """What became of a case, and what is wrong with that."""
    ptx = compile_ptx(case, capability, directory)
    report, buffers = run_ptx(braid, ptx, case, directory)
    expected = case.refused.get(capability)
    if not buffers:
        return "refused", "" if expected and expected in report else report
    if expected:
        return "passed", f"it runs now; expected was: {expected}"
    findings = [finding["message"] for finding in report["findings"]]
    if case.finding:
        found = any(case.finding in message for message in findings)
        return "found", "" if found else f"no finding has '{case.finding}': {findings}"
    return "passed", "; ".join(findings or wrong_values(case, buffers))


def main():
    braid, names = sys.argv[1], sys.argv[2:]
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        for case in rows.cases() + products.cases() + descriptors.cases() + tensor_memory.cases() + others.cases():
            if names and case.name not in names:
                continue
            for capability in case.capabilities:
                what, problem = outcome(braid, case, capability, pathlib.Path(directory))
                outcomes["failed" if problem else what] += 1
                if problem:
                    print(f"{case.name} for sm_{capability}: {problem}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in sorted(outcomes.items())))
    sys.exit(1 if outcomes["failed"] or not outcomes["passed"] else 0)


main()
