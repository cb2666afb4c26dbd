#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Finds the foreign code inside built binaries and writes its notices and an SPDX 2.3 SBOM.

  inventory.py --build DIR [--sysroot DIR]... --name PACKAGE --version V --epoch SECONDS --out DIR
               FILE=BUILT...

FILE is the shipped file (hashed), named in the SBOM by its path below --root; BUILT is the binary
in the build folder it came from. The contents are read from BUILT's link map, from the maps of the
relocatable objects that went into it, and from ninja's dependency records; dpkg names the package
of each system file, and the list `files` of a folder of extracted packages (a sysroot, DPDK's
folder of packaging/make-dpdk) the package of each file below it. Code that components.toml does not list is an error.
"""
import argparse
import collections
import datetime
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

HERE = pathlib.Path(__file__).resolve().parent


class Unknown(Exception):
    """Code inside a binary that components.toml does not list."""


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


def read_map(path):
    """The inputs of a link: our own object files, and {archive: {members}} of the system's."""
    objects, archives, section = set(), collections.defaultdict(set), ""
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("Archive member included"):
            section = "members"
        elif re.match(r"(Merging|Discarded|Memory|As-needed|There are)", line):
            section = ""
        elif section == "members" and line and not line[0].isspace():
            # Behind a short name the same line has the symbol it was linked for.
            name = re.split(r"\s{2,}", line.strip())[0]
            archive, member = re.fullmatch(r"([^(]+?)(?:\((.*)\))?", name).groups()
            if member is None:
                objects.add(archive)  # A thin archive of ours.
            else:
                archives[archive].add(member)
        elif line.startswith("LOAD ") and line.endswith(".o"):
            objects.add(line[len("LOAD "):])
    return objects, archives


def contents(build, binary):
    """All objects and system archives inside a binary, also through earlier runs of `ld -r`."""
    objects, archives = read_map(build / f"{binary}.map")
    pending = list(objects)
    while pending:
        partial = build / f"{pending.pop()}.map"
        if not partial.exists():
            continue
        more_objects, more_archives = read_map(partial)
        pending += more_objects - objects
        objects |= more_objects
        for name, members in more_archives.items():
            archives[name] |= members
    return objects, archives


class Sysroot:
    """A folder of extracted packages. Their names here end in the folder's: dpkg may know packages of
    the same names."""

    def __init__(self, folder):
        self.folder = folder
        self.sources = {}  # By package: the source package and its version.
        self.packages = {}  # By path below the folder.
        for line in (folder / "files").read_text().splitlines():
            path, package, source, version = line.split("\t")
            marked = f"{package}:{folder}"
            self.sources[marked] = [source, version]
            self.packages[re.sub(r"^lib/", "usr/lib/", path)] = marked


SYSROOTS = []  # main() fills it.


def sysroot_of(path):
    """The innermost one that the path is below; None: it is the machine's own."""
    around = [one for one in SYSROOTS if pathlib.Path(path).is_relative_to(one.folder)]
    return max(around, key=lambda one: len(one.folder.parts), default=None)


@functools.cache
def ninja_records(build):
    """{object: headers from outside of our tree}, as ninja recorded them."""
    records, current, seen = {}, set(), {}
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line[0].isspace():
            current = records.setdefault(line.split(":")[0], set())
        elif line:
            if line not in seen:
                path = os.path.normpath(build / line.strip())
                ours = pathlib.Path(path).is_relative_to(HERE.parent)
                ours = ours and sysroot_of(path) is None
                seen[line] = None if ours else path
            current.add(seen[line])
    return records


def headers_of(build, objects):
    records = ninja_records(build)
    return {h for o in objects for h in records.get(o, ()) if h}


@functools.cache
def package_index():
    """{path: package} of all files that dpkg installed where compilers look; a single query is
    fast."""
    index = {}
    for line in run("dpkg-query", "-S", "/usr/include/*", "/usr/lib/*.a", "/usr/lib/*.o", "/usr/lib/gcc/*",
                    "/usr/lib/gcc-cross/*", "/usr/*-linux-gnu/*", check=False).splitlines():
        packages, _, path = line.partition(": ")
        if not packages.startswith("diversion"):
            index[path] = packages.split(",")[0]
    return index


def owner(file):
    real = pathlib.Path(file).resolve()
    sysroot = sysroot_of(real)
    if sysroot is not None:
        return sysroot.packages.get(str(real.relative_to(sysroot.folder)))
    # Elsewhere: such as Debian 13's kernel headers.
    return (package_index().get(file) or package_index().get(str(real)) or
            run("dpkg-query", "-S", str(real), check=False).partition(": ")[0].split(",")[0])


def owners(files):
    """{file: binary package}"""
    result = {file: owner(file) for file in files}
    for file, package in result.items():
        if not package:
            raise Unknown(f"{file} is inside and belongs to no package")
    return result


@functools.cache
def source_of(package):
    for sysroot in SYSROOTS:
        if package in sysroot.sources:
            return sysroot.sources[package]
    return run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package).split()


class Component:
    """One foreign project, with the binaries that contain it."""

    def __init__(self, entry, package, source, version):
        self.name, self.license, self.url, self.how = (
            entry[k] for k in ("name", "license", "url", "how"))
        self.package, self.source, self.version = package, source, version
        self.seen_in = set()


def find_components(build, binaries, listed):
    known = tomllib.loads(listed.read_text())["component"]
    components = {}
    for binary in binaries:
        objects, archives = contents(build, binary)
        own = {o for o in objects if not o.startswith("/")}
        system = {o for o in objects if o.startswith("/")} | set(archives)
        files = system | headers_of(build, own)
        for file, package in owners(files).items():
            source, version = source_of(package)
            entry = next((k for k in known if re.fullmatch(k["source"], source)), None)
            if entry is None:
                raise Unknown(f"{file} of {source} is inside {binary}: add it to components.toml")
            strangers = archives.get(file, set()) - set(entry.get("members", archives.get(file, ())))
            if strangers:
                raise Unknown(f"{file}({', '.join(sorted(strangers))}) is inside {binary}: "
                              f"look up its licence and add it to components.toml")
            component = components.setdefault(source, Component(entry, package, source, version))
            component.seen_in.add(binary)
    return [components[source] for source in sorted(components)]


def copyright_text(package):
    root = next((one.folder for one in SYSROOTS if package in one.sources), pathlib.Path("/"))
    path = root / "usr/share/doc" / package.split(":")[0] / "copyright"
    return path.read_text(errors="replace").strip()


def write_notices(path, components, name):
    parts = [f"Third-party code inside {name}, with the texts its distributor gives for it.\n"
             f"A text may name files that are not inside; the licences that hold here stand in each heading.\n"]
    for c in components:
        parts.append(f"{'=' * 98}\n{c.name} {c.version} ({c.license})\n{c.url}\n"
                     f"in {', '.join(sorted(pathlib.Path(b).name for b in c.seen_in))}\n"
                     f"{'=' * 98}\n\n{copyright_text(c.package)}\n")
    path.write_text("\n".join(parts))


def needed(file):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", str(file)))


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def sbom(arguments, shipped, components):
    """The document as a value; its namespace follows from its content."""
    root = spdx_id(f"Package-{arguments.name}")
    nothing = {"downloadLocation": "NOASSERTION", "filesAnalyzed": False,
               "copyrightText": "NOASSERTION"}
    packages = [nothing | {
        "SPDXID": root, "name": arguments.name, "versionInfo": arguments.version,
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "supplier": "Organization: the ztcp authors", "primaryPackagePurpose": "LIBRARY"}]
    files, relations = [], [("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    for path, built in shipped:
        data = path.read_bytes()
        file_id = spdx_id(f"File-{path.name}")
        files.append({
            "SPDXID": file_id, "fileName": f"./{path.relative_to(arguments.root)}",
            "fileTypes": ["BINARY"], "licenseConcluded": "NOASSERTION",
            "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": a.upper(), "checksumValue": hashlib.new(a, data).hexdigest()}
                          for a in ("sha1", "sha256")]})
        relations.append((root, "CONTAINS", file_id))
        for library in needed(path):
            relations.append((file_id, "DYNAMIC_LINK", spdx_id(f"Library-{library}")))
        for c in components:
            if built in c.seen_in:
                kind = {"static": "STATIC_LINK", "headers": "CONTAINS"}.get(c.how, "DEPENDS_ON")
                relations.append((file_id, kind, spdx_id(f"Component-{c.source}")))
    for library in sorted({n for path, _ in shipped for n in needed(path)}):
        packages.append(nothing | {
            "SPDXID": spdx_id(f"Library-{library}"), "name": library,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "comment": "Found by the loader on the user's machine; not inside."})
    for c in components:
        packages.append(nothing | {
            "SPDXID": spdx_id(f"Component-{c.source}"), "name": c.name, "versionInfo": c.version,
            "homepage": c.url, "licenseConcluded": c.license, "licenseDeclared": c.license,
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{c.source}@{c.version}?arch=source"}]})
    created = datetime.datetime.fromtimestamp(arguments.epoch, datetime.timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{arguments.name}-{arguments.version}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: ztcp-inventory"]},
        "documentDescribes": [root], "packages": packages, "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations]}
    digest = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return document | {"documentNamespace": f"https://spdx.org/spdxdocs/{document['name']}-{digest}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--sysroot", type=pathlib.Path, action="append", default=[],
                        help="a folder of extracted packages that the build found files in")
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="folder FILE lies below")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--components", type=pathlib.Path, default=HERE / "components.toml")
    parser.add_argument("files", nargs="+", metavar="FILE=BUILT")
    arguments = parser.parse_args()
    SYSROOTS.extend(Sysroot(folder.resolve()) for folder in arguments.sysroot)
    pairs = [f.rsplit("=", 1) for f in arguments.files]
    shipped = [(pathlib.Path(file), built) for file, built in pairs]
    try:
        components = find_components(arguments.build.resolve(), [built for _, built in shipped],
                                     arguments.components)
    except (Unknown, OSError) as problem:
        print(f"inventory: {problem}", file=sys.stderr)
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_notices(arguments.out / "THIRD-PARTY-NOTICES", components, arguments.name)
    document = sbom(arguments, shipped, components)
    (arguments.out / "sbom.spdx.json").write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(f"  {c.name} {c.version} ({c.license})" for c in components))
    return 0


if __name__ == "__main__":
    sys.exit(main())
