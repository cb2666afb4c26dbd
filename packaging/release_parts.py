# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The texts of a release: notes from CHANGELOG.md, one SBOM of all packages, and checksums.

Pure but for reading the given files, so that tests need no build.
"""
import hashlib
import json
import re
import uuid

NOTES = "RELEASE-NOTES.md"
SUMS = "SHA256SUMS"
KINDS = [(".whl", "Python wheel"), ("-dbgsym_*.deb", "debug symbols for Debian"), (".deb", "Debian package"),
         (".rpm", "rpm package"), (".tar.gz", "archive for any Linux with glibc 2.34"),
         (".spdx.json", "SBOM, SPDX 2.3")]


class Refused(Exception):
    """The release can't be made, with the reason."""


def kind_of(name):
    for pattern, kind in KINDS:
        if re.search(re.escape(pattern).replace(r"\*", ".*") + "$", name):
            return kind
    return "file"


def section_of(changelog, version):
    """(the section's text, whether it is released) of the version in CHANGELOG.md."""
    sections = re.split(r"^## ", changelog, flags=re.M)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", heading):
            return text.strip(), not heading.lower().startswith("unreleased")
    known = ", ".join(section.partition("\n")[0] for section in sections) or "none"
    raise Refused(f"CHANGELOG.md has no section for {version}; its sections are: {known}")


def without_links(text):
    """Paths of documents instead of links to them, which lead nowhere outside of the repository."""
    def shown(match):
        label, target = re.sub(r"\s+", " ", match[1]), match[2]
        return label if label == target.partition("#")[0] or target.startswith("#") else f"{label} ({target})"
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", shown, text)


def size_text(size):
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def notes(changelog, version, files):
    """The release notes. `files`: paths of the release's files."""
    text, is_released = section_of(changelog, version)
    lines = [f"# ztcp {version}" + ("" if is_released else " (unreleased)"), "", without_links(text), "",
             "## Files", "", "| file | kind | size |", "|---|---|---|"]
    lines += [f"| `{file.name}` | {kind_of(file.name)} | {size_text(file.stat().st_size)} |"
              for file in sorted(files)]
    lines += ["", f"`sha256sum -c {SUMS}` compares the files with their sums. `docs/install.md`, which all",
              "packages of the tools contain, says how to install each.", ""]
    return "\n".join(lines)


def merged_sbom(documents, version, files):
    """One SPDX document that contains those of the packages and the release's files."""
    root = "SPDXRef-Release-ztcp"
    nothing = {"downloadLocation": "NOASSERTION", "filesAnalyzed": False, "copyrightText": "NOASSERTION"}
    packages = [nothing | {
        "SPDXID": root, "name": "ztcp", "versionInfo": version, "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0", "supplier": "Organization: the ztcp authors"}]
    entries, relations = [], [("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    for document in documents:
        name = document["documentDescribes"][0].removeprefix("SPDXRef-Package-")
        # The same library has an entry in each document.
        own = {one["SPDXID"]: one["SPDXID"].replace("SPDXRef-", f"SPDXRef-{name}-", 1)
               for one in [*document["packages"], *document["files"]]}
        packages += [one | {"SPDXID": own[one["SPDXID"]]} for one in document["packages"]]
        entries += [one | {"SPDXID": own[one["SPDXID"]]} for one in document["files"]]
        relations.append((root, "CONTAINS", own[document["documentDescribes"][0]]))
        relations += [(own[r["spdxElementId"]], r["relationshipType"], own[r["relatedSpdxElement"]])
                      for r in document["relationships"] if r["spdxElementId"] in own]
    for file in sorted(files):
        data = file.read_bytes()
        identifier = "SPDXRef-Released-" + re.sub(r"[^A-Za-z0-9.-]", "-", file.name)
        entries.append({
            "SPDXID": identifier, "fileName": f"./{file.name}", "fileTypes": ["ARCHIVE"],
            "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
            "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": a.upper(), "checksumValue": hashlib.new(a, data).hexdigest()}
                          for a in ("sha1", "sha256")]})
        relations.append((root, "CONTAINS", identifier))
    out = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
           "name": f"ztcp-{version}",
           "creationInfo": {"created": documents[0]["creationInfo"]["created"],
                            "creators": documents[0]["creationInfo"]["creators"]},
           "documentDescribes": [root], "packages": packages, "files": entries,
           "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                             for a, kind, b in relations]}
    digest = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(out, sort_keys=True))
    return out | {"documentNamespace": f"https://spdx.org/spdxdocs/{out['name']}-{digest}"}


def sums(files):
    """As sha256sum writes and reads them."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files))
