#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Generates all files derived from config/schema.toml.

  gen_config_docs.py table SCHEMA OUT        C++ initialisers for config/schema.cc
  gen_config_docs.py man SCHEMA HEAD OUT     ztcp.conf.5.scd: HEAD with the generated keys in place
                                             of the lines @KEYS@ and @ENVIRONMENT@
"""
import json
import sys
import textwrap
import tomllib

TYPES = {"string": "kString", "integer": "kInteger", "boolean": "kBoolean",
         "choice": "kChoice", "integers": "kIntegers"}
KEY_FIELDS = {"section", "name", "type", "default", "min", "max", "max_pci", "choices", "unit",
              "form", "drivers", "required", "meaning"}


def fail(text):
    sys.exit(f"schema.toml: {text}")


def literal(value):
    """A value in TOML; equal to JSON for all values of a config."""
    return json.dumps(value)


def quoted(text):
    """A C++ string literal; JSON's escapes are C++'s for plain ASCII."""
    if not text.isascii():
        fail(f"not ASCII: {text}")
    return json.dumps(text)


def read(path):
    with open(path, "rb") as file:
        schema = tomllib.load(file)
    sections = [section["name"] for section in schema["section"]]
    seen = set()
    for key in schema["key"]:
        where = f'{key["section"]}.{key["name"]}'
        if unknown := set(key) - KEY_FIELDS:
            fail(f"{where}: unknown field {sorted(unknown)}")
        if where in seen:
            fail(f"{where} is listed twice")
        seen.add(where)
        if key["section"] not in sections:
            fail(f"{where}: no such section")
        if key["type"] not in TYPES:
            fail(f'{where}: no such type {key["type"]}')
        if "default" not in key and key.get("required") is not True:
            fail(f"{where} has neither a default nor required = true")
        if key["type"] in ("integer", "integers") and not {"min", "max"} <= set(key):
            fail(f"{where} has no range")
        if key["type"] == "choice" and not key.get("choices"):
            fail(f"{where} has no choices")
    return schema


def required_for(key):
    required = key.get("required", [])
    return "all" if required is True else "|".join(required)


def table(schema):
    lines = ["// Generated from schema.toml by gen_config_docs.py.",
             "inline constexpr Key kKeys[] = {"]
    for key in schema["key"]:
        default = literal(key["default"]) if "default" in key else ""
        fields = [
            ("section", quoted(key["section"])),
            ("name", quoted(key["name"])),
            ("type", "Type::" + TYPES[key["type"]]),
            ("min", f'{key.get("min", 0)}LL'),
            ("max", f'{key.get("max", 0)}LL'),
            ("max_pci", f'{key.get("max_pci", key.get("max", 0))}LL'),
            ("choices", quoted("|".join(key.get("choices", [])))),
            ("default_text", quoted(default)),
            ("unit", quoted(key.get("unit", ""))),
            ("form", quoted(key.get("form", ""))),
            ("drivers", quoted("|".join(key.get("drivers", [])))),
            ("required_for", quoted(required_for(key))),
            ("meaning", quoted(key["meaning"])),
        ]
        lines.append("    {" + ", ".join(f".{name} = {value}" for name, value in fields) + "},")
    lines += ["};", "inline constexpr Section kSections[] = {"]
    for section in schema["section"]:
        lines.append(f'    {{{quoted(section["name"])}, {quoted(section["meaning"])}}},')
    lines += ["};", "inline constexpr std::string_view kEnvironment[] = {"]
    lines += [f'    {quoted(variable["name"])},' for variable in schema["environment"]]
    lines += ["};", ""]
    return "\n".join(lines)


def indented(text):
    """A paragraph for scdoc, where a line that begins with a dash would be a list."""
    lines = textwrap.wrap(escaped(text), 96)
    return ["\t" + ("\\" if line.startswith("-") else "") + line for line in lines]


def escaped(text):
    """Plain text for scdoc, where these characters would start formatting."""
    for char in "\\_*#[]<>`|":
        text = text.replace(char, "\\" + char)
    return text


def facts(key):
    """Type, range, default and scope of a key, as one line of text."""
    words = []
    unit = key.get("unit", "")
    if key["type"] in ("integer", "integers"):
        kind = "integer" if key["type"] == "integer" else "list of integers"
        limits = f'{key["min"]} to {key["max"]}' if key["min"] != key["max"] else str(key["min"])
        words.append(kind if "form" in key else f"{kind}, {limits} {unit}".rstrip())
        if "choices" in key:
            words.append("or " + ", ".join(f'"{choice}"' for choice in key["choices"]))
        if "max_pci" in key:
            words.append(f'up to {key["max_pci"]} with driver "pci"')
    elif key["type"] == "choice":
        words.append("one of " + ", ".join(f'"{choice}"' for choice in key["choices"]))
    else:
        words.append(key["type"])
    if "form" in key:
        words.append(key["form"])
    if "drivers" in key:
        words.append("only with driver " + " or ".join(f'"{d}"' for d in key["drivers"]))
    if key.get("required"):
        words.append("required")
    else:
        words.append("default: " + literal(key["default"]))
    return "; ".join(words) + "."


def man(schema, head):
    keys = []
    for section in schema["section"]:
        title = {"": "Top of the file", "nic": "[[nic]]"}.get(section["name"],
                                                              f'[{section["name"]}]')
        # scdoc does not parse headings, so nothing in them is escaped.
        keys += [f"## {title}", "", *textwrap.wrap(escaped(section["meaning"]), 98), ""]
        for key in schema["key"]:
            if key["section"] != section["name"]:
                continue
            keys.append(f'*{key["name"].replace("_", chr(92) + "_")}*')
            for text in (key["meaning"], facts(key)):
                keys += indented(text)
                keys.append("" if text is not key["meaning"] else "\t")
            while keys[-2:] == ["\t", ""]:
                keys.pop(-2)
    environment = []
    for variable in schema["environment"]:
        environment.append(f'*{escaped(variable["name"])}*={escaped(variable["value"])}')
        text = variable["meaning"]
        if variable["default"]:
            text += f' Default: {variable["default"]}.'
        environment += indented(text) + [""]
    out = []
    for line in head.splitlines():
        if line == "@KEYS@":
            out += keys
        elif line == "@ENVIRONMENT@":
            out += environment
        else:
            out.append(line)
    # scdoc refuses a document with trailing blanks.
    return "\n".join(line.rstrip() for line in out).rstrip() + "\n"


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "table":
        text = table(read(sys.argv[2]))
    elif len(sys.argv) == 5 and sys.argv[1] == "man":
        with open(sys.argv[3], encoding="utf-8") as file:
            text = man(read(sys.argv[2]), file.read())
    else:
        sys.exit(__doc__)
    with open(sys.argv[-1], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
