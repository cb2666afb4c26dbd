#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that transport/tcp/CONFORMANCE.md and the tests agree.

  tests    each `Suite.Name` in backquotes is a test of the tree (a * stands for any characters), and
           each path is one of its files
  scripts  each script of tests/scripts has a `rule` line, and each names an RFC of a heading and
           the beginning of a section in the first column of that chapter's table, or words of a
           chapter without one

usage: check_conformance.py [ROOT]     exit 1 and a line per offence
"""
import fnmatch
import pathlib
import re
import sys

PAGE = "transport/tcp/CONFORMANCE.md"
QUOTED = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Z*][\w*]*(?:/[A-Z*][\w*]*)?\.[\w*/]+")
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", re.MULTILINE)
PATH = re.compile(r"[\w/]+\.(?:cc|h)|tests/[\w/]+")
RULE = re.compile(r"rule RFC (\d+) (.+)")


def tests_of(root):
    """The names of all tests: "Suite.Name"."""
    return {f"{suite}.{name}" for source in (root / "tests").rglob("*.cc")
            for suite, name in TEST.findall(source.read_text())}


def chapters(page):
    """For each heading its RFCs and the lines below it."""
    found = []
    for line in page.splitlines():
        if line.startswith("## "):
            found.append((re.findall(r"\b\d{3,5}\b", line), []))
        elif found:
            found[-1][1].append(line)
    return found


def has_rule(found, rfc, section):
    for rfcs, lines in found:
        if rfc not in rfcs:
            continue
        rows = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
        if any(section in row for row in rows):
            return True
        if not rows and section in "\n".join(lines):
            return True
    return False


def offences(root):
    page = (root / PAGE).read_text()
    tests = tests_of(root)
    files = [str(path.relative_to(root)) for path in (root / "tests").rglob("*") if path.is_file()]
    for number, line in enumerate(page.splitlines(), 1):
        for quoted in QUOTED.findall(line):
            if NAME.fullmatch(quoted):
                # A parameterised test's name has its instance before and its parameter behind.
                pattern = re.sub(r"^[\w*]+/", "", quoted)
                pattern = re.sub(r"(\.[\w*]+)/.*$", r"\1", pattern)
                if not fnmatch.filter(tests, pattern):
                    yield f"{PAGE}:{number}: no test {quoted}"
            elif quoted.startswith("tests/") or re.fullmatch(r"\w+_test\.cc", quoted):
                if not any(file == quoted or file.startswith(quoted + "/") or
                           file.endswith("/" + quoted) for file in files):
                    yield f"{PAGE}:{number}: no file {quoted}"
    found = chapters(page)
    for script in sorted((root / "tests/scripts").glob("*.script")):
        rules = RULE.findall(script.read_text())
        name = script.relative_to(root)
        if not rules:
            yield f"{name}: no rule"
        for rfc, section in rules:
            if not has_rule(found, rfc, section.strip()):
                yield f"{name}: no row {section} of RFC {rfc} in {PAGE}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    all_offences = list(offences(root))
    for offence in all_offences:
        print(offence)
    return bool(all_offences)


if __name__ == "__main__":
    sys.exit(main())
