#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that transport/tcp/CONFORMANCE.md and the tests agree.

  tests    each `Suite.Name` in backquotes is a test of the tree (a * stands for any characters), and
           each path is one of its files
  scripts  each script of tests/scripts has a `rule` line, and each names an RFC of a heading and
           one row of that chapter's table: its section, and as many first words of its rule as
           tell it from other rows; or words of a chapter without a table
  rows     each row that is implemented has a script, or ends its last column with "; no script: "
           and the reason; each chapter without a table likewise (a sentence "No script: ..."). A row
           is not implemented if its third column is "no" or begins with "no:", and is told elsewhere
           if that is "RFC N below"

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
RULE = re.compile(r"^rule (?:RFC )?(\S+) (.+)", re.MULTILINE)
NOT_HERE = re.compile(r"no(?=[:,;]|$| \()|(?:see )?RFC \d[\d, ]*(?: below| above)?$")
REASON = re.compile(r"(?:^|; )no script: \w")
REASON_OF_CHAPTER = re.compile(r"(?:^|\. )No script: \w")


def tests_of(root):
    """The names of all tests: "Suite.Name"."""
    return {f"{suite}.{name}" for source in (root / "tests").rglob("*.cc")
            for suite, name in TEST.findall(source.read_text())}


class Row:
    """A row of a table, or a chapter without one."""

    def __init__(self, number, text, cells):
        self.number, self.text, self.cells = number, text, cells
        self.scripts = []

    def is_named_by(self, rfc, name):
        if not self.cells:
            return name in self.text
        # Where a chapter is about several RFCs, its sections begin with the RFC's name.
        sections = [re.sub(rf"^(RFC )?{rfc} (?=\d)", "", section)
                    for section in (self.cells[0], *self.cells[0].split(", "))]
        return any(name == section or (name.startswith(section + " ") and
                   self.cells[1].startswith(name[len(section) + 1:])) for section in sections)

    def needs_script(self):
        return not self.cells or not NOT_HERE.match(self.cells[2])

    def gives_reason(self):
        return bool(REASON.search(self.cells[3]) if self.cells else
                    REASON_OF_CHAPTER.search(self.text))


def chapters(page):
    """For each heading its words and its rows."""
    found = []
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("## "):
            found.append((re.findall(r"[\w-]+", line), number, [], []))
        elif found:
            found[-1][2].append(line)
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| ") and cells[0] != "section":
                cells[-1] = cells[-1].removesuffix("|").strip()
                found[-1][3].append(Row(number, line, cells))
    return [(words, rows or [Row(number, " ".join(lines), [])])
            for words, number, lines, rows in found]


def offences_of_rules(root, found):
    for script in sorted((root / "tests/scripts").glob("*.script")):
        rules = RULE.findall(script.read_text())
        name = script.relative_to(root)
        if not rules:
            yield f"{name}: no rule"
        for rfc, rule in rules:
            rows = [row for words, rows in found if rfc in words
                    for row in rows if row.is_named_by(rfc, rule.strip())]
            if not rows:
                yield f"{name}: no row {rule} of {rfc} in {PAGE}"
            elif len(rows) > 1:
                yield f"{name}: {len(rows)} rows {rule} of {rfc} in {PAGE}: add words of the rule"
            else:
                rows[0].scripts.append(name)


def offences_of_rows(found):
    for words, rows in found:
        if not any(word.isdigit() or word.startswith("draft-") for word in words):
            continue
        for row in rows:
            what = f"{PAGE}:{row.number}"
            if row.cells and len(row.cells) != 4:
                yield f"{what}: {len(row.cells)} columns: section, rule, here, test"
                continue
            if row.scripts and row.gives_reason():
                yield f"{what}: \"no script\", but {row.scripts[0]} is one"
            if row.needs_script() and not row.scripts and not row.gives_reason():
                yield f"{what}: neither a script nor \"no script: \" and a reason"


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
    yield from offences_of_rules(root, found)
    yield from offences_of_rows(found)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    all_offences = list(offences(root))
    for offence in all_offences:
        print(offence)
    return bool(all_offences)


if __name__ == "__main__":
    sys.exit(main())
