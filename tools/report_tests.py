#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files, lists failures and skips with their reasons, fails on an unexpected skip.

Expected skips are listed in a text file, one `PATTERN  # why` per line; PATTERN matches suite.case
as a shell glob.
"""
import argparse
import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def read_expected(path):
    for line in pathlib.Path(path).read_text().splitlines():
        pattern, _, why = line.partition("#")
        if pattern.strip():
            yield pattern.strip(), why.strip()


def why_failed(case):
    """The last message of the case, or of the whole process that died in it; empty: none."""
    failure = case.find("failure")
    if failure is not None and failure.get("message"):
        return " ".join(failure.get("message").split())[:300]
    said = "".join(part.text or "" for tag in ("system-out", "system-err") for part in case.iter(tag))
    begun = re.findall(r"^\[ RUN      \] (\S+)", said, re.MULTILINE)
    reports = re.findall(r"^(?:SUMMARY: .*Sanitizer.*|.*runtime error:.*|.*terminate called.*|FAILED: .*|"
                         r"AssertionError.*)$", said, re.MULTILINE)
    return "; ".join([*(f"in {name}" for name in begun[-1:]), *reports[:1]])[:300]


def cases(files):
    """(stage, name, state, reason) for each test case."""
    for file in files:
        stage = pathlib.Path(file).stem
        for suite in ElementTree.parse(file).getroot().iter("testsuite"):
            for case in suite.findall("testcase"):
                name = f"{suite.get('name', '')}.{case.get('name', '')}"
                skipped = case.find("skipped")
                if case.find("failure") is not None or case.find("error") is not None:
                    yield stage, name, "failed", why_failed(case)
                elif skipped is not None or case.get("result") == "skipped":
                    reason = "" if skipped is None else skipped.get("message") or skipped.text or ""
                    yield stage, name, "skipped", " ".join(reason.split())
                else:
                    yield stage, name, "passed", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expected", required=True)
    parser.add_argument("--failed-stages", type=int, default=0,
                        help="stages that failed as a whole; each counts when no case of it failed")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()

    expected = list(read_expected(arguments.expected))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    unexpected = 0
    files = [file for file in arguments.files if pathlib.Path(file).exists()]
    for stage, name, state, reason in cases(files):
        counts[state] += 1
        if state == "failed":
            print(f"FAILED   {stage}: {name}{': ' if reason else ''}{reason}")
        if state == "skipped":
            known = any(fnmatch.fnmatch(name, pattern) for pattern, _ in expected)
            unexpected += not known
            print(f"{'skipped' if known else 'UNEXPECTED SKIP'}  {stage}: {name}: {reason or 'no reason given'}")
    failed = max(counts["failed"], arguments.failed_stages) + unexpected
    print(f"{counts['passed']} passed, {failed} failed, {counts['skipped']} skipped")
    return 1 if failed or (files and counts["passed"] == 0) else 0


if __name__ == "__main__":
    sys.exit(main())
