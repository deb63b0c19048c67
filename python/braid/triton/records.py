"""What launches leave: findings, counts and estimates."""

import dataclasses
import os
from typing import Any, Iterable, Mapping, NamedTuple

from ..errors import Error


class KernelError(Error):
    """A kernel stopped: an access to no memory, a trap, a failed assertion, a deadlock."""


class SanitizerWarning(UserWarning):
    """A launch of a kernel has findings."""


class Finding(NamedTuple):
    """An error of a kernel, found by the sanitizer."""

    kind: str  # "race", "bounds", "uninitialized", ... (docs/checking.md)
    message: str  # what happened, without the place
    kernel: str
    file: str  # path of the Python file
    line: int  # its line; 0 where the PTX has none
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    buffer: str  # name of the argument
    offset: int  # bytes from the buffer's start
    other: str  # the other access of a race, with its place
    text: str  # all of it on one line

    def __str__(self) -> str:
        return self.text


class Source(NamedTuple):
    """Where a kernel was written, and for what values it was compiled."""

    name: str
    file: str
    line: int
    constants: tuple[tuple[str, str], ...]
    warps: int
    ctas: int


def finding(found: Mapping[str, Any], source: Source) -> Finding:
    """One of the library's JSON."""
    file = found["cuda_file"]
    return Finding(
        found["kind"],
        found["message"],
        found["kernel"],
        source.file if file == os.path.basename(source.file) else file,
        found["cuda_line"],
        tuple(found["block"]),
        tuple(found["thread"]),
        found["buffer"],
        found["offset"],
        found["other"],
        found["text"],
    )


@dataclasses.dataclass
class KernelReport:
    """All launches of a kernel with the same constants, warps and grid."""

    source: Source
    grid: tuple[int, int, int]
    launches: int = 0
    milliseconds: float = 0  # on the cpu device, over all launches
    counts: dict[str, Any] | None = None  # of the last launch, as `braid run --count --json` has them

    @property
    def estimate_us(self) -> float | None:
        """The estimated time of a launch on the device of `use(count=...)`."""
        return None if self.counts is None else self.counts["estimate"]["ns"] / 1e3

    @property
    def limiter(self) -> str | None:
        """What limits it there: "memory", "matrix unit", "launch", ..."""
        return None if self.counts is None else self.counts["estimate"]["limiter"]


def _table(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


@dataclasses.dataclass
class Report:
    """Since `use` or `forget`. As text it is a table of kernels, and a line for each finding."""

    kernels: list[KernelReport]
    findings: list[Finding]
    notes: list[Finding]  # harmless
    device: str

    def __str__(self) -> str:
        counted = any(kernel.counts for kernel in self.kernels)
        head = ["kernel", "place", "grid", "warps", "launches", "ms on cpu"]
        rows = [tuple(head + [f"us on {self.device}", "limiter", "bytes moved"] * counted)]
        for kernel in self.kernels:
            source = kernel.source
            row = [
                source.name,
                f"{os.path.basename(source.file)}:{source.line}",
                " x ".join(map(str, kernel.grid)),
                str(source.warps),
                str(kernel.launches),
                f"{kernel.milliseconds / kernel.launches:.2f}",
            ]
            if kernel.counts is not None:
                moved = kernel.counts["counts"]["global_sectors"] * 32
                row += [f"{kernel.estimate_us:.1f}", kernel.limiter, str(moved)]
            rows.append(tuple(row + [""] * (len(rows[0]) - len(row))))
        lines = list(_table(rows))
        lines += map(str, self.findings)
        return "\n".join(lines)
