"""Checks that each test which a page of docs/ names is there: `Suite.Name`, or `.Name` of the suite
named before it in the same cell of a table. Prints those that are not, and exits with 1."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ("numerics.md", "reference_rows.md")
DEFINED = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
NAMED = re.compile(r"(?<![\w./])([A-Z]\w*)?\.([A-Z]\w*)(?![\w.])")


def tests_of(folder: pathlib.Path) -> set[tuple[str, str]]:
    return {found for file in folder.rglob("*.cpp") for found in DEFINED.findall(file.read_text())}


def named_in(page: pathlib.Path) -> set[tuple[str, str]]:
    result = set()
    for line in page.read_text().splitlines():
        for cell in line.split("|"):
            suite = ""
            for found, name in NAMED.findall(cell):
                suite = found or suite
                if suite:
                    result.add((suite, name))
    return result


def main() -> int:
    there = tests_of(ROOT / "tests")
    missing = 0
    for page in PAGES:
        named = named_in(ROOT / "docs" / page)
        if not named:
            print(f"{page}: names no test")
            missing += 1
        for suite, name in sorted(named - there):
            print(f"{page}: there is no test {suite}.{name}")
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
