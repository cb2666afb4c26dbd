#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Holds the Kubernetes examples against the part of the API that they use, without a cluster.

The fields and types below were copied by hand from the API reference of Kubernetes 1.32 (core/v1 and
batch/v1). kubectl 1.32 once decoded the same files and knew every field.
"""
import json
import pathlib
import re
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "packaging/kubernetes"

# A type is str, int, bool; [type] is a list; {name: type} an object; {None: type} a map.
QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")
MAP = {None: str}
METADATA = {"name": str, "namespace": str, "labels": MAP}
CONTAINER = {
    "name": str, "image": str, "command": [str], "args": [str], "env": [{"name": str, "value": str}],
    "securityContext": {"allowPrivilegeEscalation": bool, "capabilities": {"add": [str], "drop": [str]},
                        "privileged": bool, "runAsUser": int, "runAsGroup": int},
    "resources": {"limits": MAP, "requests": MAP},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
}
POD = {
    "subdomain": str, "restartPolicy": str, "containers": [CONTAINER], "hostNetwork": bool, "hostIPC": bool,
    "securityContext": {"supplementalGroups": [int], "seccompProfile": {"type": str}, "fsGroup": int,
                        "runAsUser": int, "runAsGroup": int, "runAsNonRoot": bool},
    "volumes": [{"name": str, "hostPath": {"path": str, "type": str},
                 "emptyDir": {"medium": str, "sizeLimit": str}}],
}
KINDS = {
    ("v1", "ConfigMap"): {"metadata": METADATA, "data": MAP},
    ("v1", "Service"): {"metadata": METADATA, "spec": {"clusterIP": str, "selector": MAP}},
    ("batch/v1", "Job"): {"metadata": METADATA, "spec": {
        "completionMode": str, "completions": int, "parallelism": int, "backoffLimit": int,
        "template": {"metadata": METADATA, "spec": POD}}},
}


def misfits(value, kind, where):
    """What of a value does not fit its type, by path."""
    if isinstance(kind, list):
        if not isinstance(value, list):
            return [f"{where}: wanted a list"]
        return [m for i, v in enumerate(value) for m in misfits(v, kind[0], f"{where}[{i}]")]
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return [f"{where}: wanted an object"]
        found = []
        for name, v in value.items():
            if None in kind:
                found += misfits(v, kind[None], f"{where}.{name}")
            elif name not in kind:
                found.append(f"{where}.{name}: no such field")
            else:
                found += misfits(v, kind[name], f"{where}.{name}")
        return found
    if type(value) is not kind:  # bool is an int to isinstance().
        return [f"{where}: {value!r} is no {kind.__name__}"]
    return []


def judge(document):
    api = (document.get("apiVersion"), document.get("kind"))
    if api not in KINDS:
        return [f"{api}: no such kind here"]
    rest = {k: v for k, v in document.items() if k not in ("apiVersion", "kind")}
    return misfits(rest, KINDS[api], api[1])


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.documents = {d["kind"]: d for f in sorted(FOLDER.glob("*.yaml"))
                          for d in yaml.safe_load_all(f.read_text())}
        self.pod = self.documents["Job"]["spec"]["template"]["spec"]
        self.container = self.pod["containers"][0]

    def test_every_field_is_known_and_of_its_type(self):
        for document in self.documents.values():
            self.assertEqual(judge(document), [])

    def test_the_judge_sees_faults(self):
        job = json.loads(json.dumps(self.documents["Job"]))
        job["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
        job["spec"]["completions"] = "2"
        self.assertEqual(len(judge(job)), 2)

    def test_nothing_is_privileged(self):
        self.assertNotIn("hostNetwork", self.pod)
        context = self.container["securityContext"]
        self.assertIs(context["allowPrivilegeEscalation"], False)
        self.assertEqual(context["capabilities"], {"drop": ["ALL"], "add": ["IPC_LOCK"]})
        self.assertNotIn("privileged", context)
        self.assertEqual({v["hostPath"]["path"] for v in self.pod["volumes"] if "hostPath" in v},
                         {"/usr/local/tfabric/tools/config", "/usr/local/tfabric/tools/run"})

    def test_resources_fit_together(self):
        limits = self.container["resources"]["limits"]
        for quantity in limits.values():
            self.assertRegex(quantity, QUANTITY)
        # The API demands it of hugepages, and cpu or memory beside them.
        self.assertEqual(limits, self.container["resources"]["requests"])
        gpus = int(limits["nvidia.com/gpu"])
        self.assertEqual(limits["hugepages-1Gi"], f"{5 * gpus}Gi")
        config = json.loads(self.documents["ConfigMap"]["data"]["config.json"])
        resource = config["resourceList"][0]
        self.assertEqual(int(limits[f"{resource['resourcePrefix']}/{resource['resourceName']}"]), gpus)
        self.assertIn(f"--nproc-per-node {gpus}", self.container["args"][0])

    def test_names_lead_somewhere(self):
        volumes = {v["name"] for v in self.pod["volumes"]}
        self.assertEqual({m["name"] for m in self.container["volumeMounts"]}, volumes)
        service = self.documents["Service"]
        self.assertEqual(self.pod["subdomain"], service["metadata"]["name"])
        self.assertEqual(service["spec"]["selector"],
                         self.documents["Job"]["spec"]["template"]["metadata"]["labels"])
        job = self.documents["Job"]["metadata"]["name"]
        self.assertIn(f"--master-addr {job}-0.{self.pod['subdomain']}", self.container["args"][0])


if __name__ == "__main__":
    unittest.main()
