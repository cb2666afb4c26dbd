#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layout of the unit tests: they mirror the sources by folder and name.

tests/unit/FOLDER/NAME_test.cc tests FOLDER/NAME.cc or .h (FOLDER without "transport/"), or with
NAME_PART_test.cc a part of it. A test of several sources together has its own name and describes its
subject in its first lines. A source of config/ or of set-up has a test with its name, or is listed
below with the test that covers it.

usage: check_tests.py [ROOT]     exit 1 and a line per offence when a rule is broken
"""
import pathlib
import sys

UNIT = pathlib.Path("tests/unit")
MIRRORED = ["config", "tools/ztcp_setup", "tools/common"]
# Sources that are visible only through another one -> the test that covers them.
TESTED_BY = {
    "config/file/validate_together": "config/file/validate_test",
    "config/machine/readings": "config/machine/live_machine_test",
    "config/problem": "config/check/check_test",
    "tools/common/write_all": "tools/common/atomic_file_test",
    "tools/ztcp_setup/check/library": "tools/ztcp_setup/check/job_environment_test",
    "tools/ztcp_setup/check/memlock": "tools/ztcp_setup/check/rights_test",
    "tools/ztcp_setup/host/interface_state": "tools/ztcp_setup/resources/interface_restore_test",
    "tools/ztcp_setup/host/job_services": "tools/ztcp_setup/check/rights_test",
    "tools/ztcp_setup/host/place_file": "tools/ztcp_setup/live/live_files_test",
    "tools/ztcp_setup/host/trust": "tools/ztcp_setup/live/live_files_test",
    "tools/ztcp_setup/host/usable_cpus": "tools/ztcp_setup/check/job_environment_test",
    "tools/ztcp_setup/live/item_message": "tools/ztcp_setup/live/live_network_test",
    "tools/ztcp_setup/live/link_change": "tools/ztcp_setup/live/live_network_test",
    "tools/ztcp_setup/live/link_read": "tools/ztcp_setup/live/live_network_test",
    "tools/ztcp_setup/live/network_text": "tools/ztcp_setup/live/live_network_test",
    "tools/ztcp_setup/live/safe_path": "tools/ztcp_setup/live/live_files_test",
    "tools/ztcp_setup/main": "tools/ztcp_setup/refusal_test",
    "tools/ztcp_setup/options": "tools/ztcp_setup/refusal_test",
    "tools/ztcp_setup/resources/owner": "tools/ztcp_setup/resources/access_test",
    "tools/ztcp_setup/resources/pci_function": "tools/ztcp_setup/resources/driver_test",
    "tools/ztcp_setup/resources/program": "tools/ztcp_setup/resources/notice_test",
    "tools/ztcp_setup/resources/resource": "tools/ztcp_setup/run/agreement_test",
    "tools/ztcp_setup/run/change_commands": "tools/ztcp_setup/refusal_test",
}


def has(root, folder, name):
    return any((root / folder / (name + end)).exists() for end in (".cc", ".h"))


def source_of(root, test):
    """The source in the test's name, as FOLDER/NAME; None: none."""
    folder = test.parent.relative_to(root / UNIT)
    words = test.name.removesuffix("_test.cc").split("_")
    for count in range(len(words), 0, -1):
        name = "_".join(words[:count])
        for place in (folder, "transport" / folder):
            if has(root, place, name):
                return (place / name).as_posix()
    return None


def says_what_it_is_about(test):
    lines = test.read_text().splitlines()
    return len(lines) > 3 and lines[2] == "//" and lines[3].startswith("// ")


def offences(root):
    tested = set()
    for test in sorted((root / UNIT).rglob("*_test.cc")):
        source = source_of(root, test)
        if source is not None:
            tested.add(source)
        elif not says_what_it_is_about(test):
            yield test.relative_to(root), "is not named after a source, and does not describe its subject"
    for folder in MIRRORED:
        for file in sorted((root / folder).rglob("*.cc")):
            source = file.relative_to(root).with_suffix("").as_posix()
            if source in tested and source in TESTED_BY:
                yield source, "has a test of its own: take it off the list of tools/check_tests.py"
            elif source not in tested and source not in TESTED_BY:
                yield source, f"has no test {UNIT / source}_test.cc"
    for source, test in TESTED_BY.items():
        if not (root / f"{source}.cc").exists():
            yield source, "is on the list of tools/check_tests.py, but does not exist"
        if not any((root / UNIT / f"{test}{end}").exists() for end in (".cc", ".py")):
            yield source, f"is listed as tested by {test}, which does not exist"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(offences(root))
    for path, what in found:
        print(f"{path}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
