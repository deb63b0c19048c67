"""A pytest plugin: a kernel with findings fails the test that launched it.

    pytest -p braid.pytest_plugin --braid-sanitize --braid-count H100

An installed package needs no `-p`. Without an option, tests that call `braid.triton.use` are
looked at alone. A test that expects findings calls `braid.triton.forget` when it has seen them.
"""

import sys
import warnings
from typing import Any, Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("braid", "Triton on braid's cpu device")
    group.addoption(
        "--braid-sanitize", nargs="?", const="all", metavar="CHECKS",
        help="launch Triton's kernels on the cpu device and check them: all, or some of "
        "bounds,init,race,sync",
    )
    group.addoption(
        "--braid-count", metavar="DEVICE",
        help="launch Triton's kernels on the cpu device, and print counts and estimates for a GPU "
        "such as H100",
    )


def pytest_configure(config: pytest.Config) -> None:
    checks, device = config.getoption("--braid-sanitize"), config.getoption("--braid-count")
    if checks or device:
        from . import triton

        triton.use(sanitize=checks or False, count=device)


def _driver() -> Any:
    """The module with the session of `use`, if there is one."""
    module = sys.modules.get("braid.triton.driver")
    return module if module is not None and module.in_use() else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    list_before = _driver().live_findings() if _driver() else []
    before = len(list_before)
    with warnings.catch_warnings():
        if module := sys.modules.get("braid.triton"):
            # The failure says what the warning would.
            warnings.simplefilter("ignore", module.SanitizerWarning)
        result = yield
    driver = _driver()
    found = driver.live_findings() if driver else []
    if found is list_before:
        found = found[before:]
    if found:
        pytest.fail("\n".join(["kernels have findings:", *map(str, found)]), pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--braid-count"):
        terminalreporter.section("kernels")
        terminalreporter.write_line(str(_driver().report()))
