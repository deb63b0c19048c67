"""Runs Triton's kernels on braid's cpu device: no GPU, with a sanitizer, counts and estimates.

    import braid.triton

    braid.triton.use(sanitize=True, count="H100")

    ...  # launch kernels on PyTorch's CPU tensors, as on a GPU

    print(braid.triton.report())

Needs Triton 3.9 and PyTorch. docs/python.md says what is checked and what is not there.
"""

from .driver import forget, report, use
from .records import Finding, KernelError, KernelReport, Report, SanitizerWarning

__all__ = [
    "Finding",
    "KernelError",
    "KernelReport",
    "Report",
    "SanitizerWarning",
    "forget",
    "report",
    "use",
]
