#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks the Kubernetes examples against the part of the API that they use, without a cluster."""
import copy
import json
import pathlib
import sys
import unittest

import yaml

sys.dont_write_bytecode = True
from kubernetes_api import API, differences, judge  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "packaging/kubernetes"


def specification():
    """An OpenAPI file with the contents of API."""
    def schema(kind):
        if isinstance(kind, tuple):
            return {"type": "string", "description": f"One of {', '.join(kind)}."}
        if kind[0] == "[":
            return {"type": "array", "items": schema(kind[1:-1])}
        if kind[0] == "{":
            return {"type": "object", "additionalProperties": schema(kind[1:-1])}
        if kind in ("int32", "int64"):
            return {"type": "integer", "format": kind}
        if kind in ("string", "boolean"):
            return {"type": kind}
        return {"$ref": f"#/definitions/io.k8s.{kind}"}
    return {f"io.k8s.api.{name}": {
        "required": [field[:-1] for field in fields if field.endswith("!")],
        "properties": {field.rstrip("!"): schema(kind) for field, kind in fields.items()}}
        for name, fields in API.items()}


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.all = {f.name: list(yaml.safe_load_all(f.read_text())) for f in sorted(FOLDER.glob("*.yaml"))}
        self.documents = {d["kind"]: d for name in ("nic-resource.yaml", "training-job.yaml") for d in self.all[name]}
        self.pod = self.documents["Job"]["spec"]["template"]["spec"]
        self.container = self.pod["containers"][0]

    def test_the_examples_fit_the_api(self):
        for documents in self.all.values():
            for document in documents:
                self.assertEqual(judge(document), [])

    def broken(self, path, value):
        """The faults of the Job with one field set; None removes it."""
        job = copy.deepcopy(self.documents["Job"])
        *folders, last = path
        at = job
        for folder in folders:
            at = at[folder]
        if value is None:
            del at[last]
        else:
            at[last] = value
        fault, = judge(job)
        return fault

    def test_the_judge_sees_each_kind_of_fault(self):
        pod = ["spec", "template", "spec"]
        container = [*pod, "containers", 0]
        for path, value, fault in (
                ([*container, "resource"], {}, "Job.spec.template.spec.containers[0].resource: no such field"),
                ([*container, "name"], None, "Job.spec.template.spec.containers[0].name: missing"),
                (["spec", "template"], None, "Job.spec.template: missing"),
                (["spec", "completions"], "2", "Job.spec.completions: '2' is no int32"),
                (["spec", "completions"], True, "Job.spec.completions: True is no int32"),
                (["spec", "completions"], 1 << 31, "Job.spec.completions: 2147483648 is no int32"),
                (["spec", "completionMode"], "indexed", "'indexed' is none of NonIndexed, Indexed"),
                ([*pod, "securityContext", "seccompProfile", "type"], "Default", "'Default' is none of Localhost"),
                ([*pod, "volumes"], {}, "volumes: wanted a list"),
                ([*container, "env"], [["NCCL_NET", "ztcp"]], "env[0]: wanted an object"),
                ([*container, "env", 0, "value"], 1, "env[0].value: 1 is no string"),
                ([*container, "resources", "limits", "memory"], "256 GB", "memory: '256 GB' is no Quantity"),
                (["apiVersion"], "batch/v2", "Job: no such kind here")):
            self.assertIn(fault, self.broken(path, value))

    def test_the_comparison_with_the_specification_finds_each_difference(self):
        self.assertEqual(differences(specification()), (sum(map(len, API.values())), []))
        for change, fault in (
                (lambda s: s["io.k8s.api.core.v1.PodSpec"]["properties"].pop("hostIPC"), "core.v1.PodSpec.hostIPC: no such"),
                (lambda s: s["io.k8s.api.core.v1.EnvVar"]["required"].append("value"), "core.v1.EnvVar: "),
                (lambda s: s["io.k8s.api.batch.v1.JobSpec"]["properties"]["completions"].update(type="string"),
                 "batch.v1.JobSpec.completions: string, not int32"),
                (lambda s: s["io.k8s.api.core.v1.PodSpec"]["properties"]["restartPolicy"].update(description="Always"),
                 "core.v1.PodSpec.restartPolicy: no value ")):
            changed = specification()
            change(changed)
            self.assertIn(fault, "\n".join(differences(changed)[1]))

    def test_nothing_is_privileged(self):
        self.assertNotIn("hostNetwork", self.pod)
        context = self.container["securityContext"]
        self.assertIs(context["allowPrivilegeEscalation"], False)
        self.assertEqual(context["capabilities"], {"drop": ["ALL"], "add": ["IPC_LOCK"]})
        self.assertNotIn("privileged", context)
        self.assertEqual({v["hostPath"]["path"] for v in self.pod["volumes"] if "hostPath" in v},
                         {"/usr/local/tfabric/tools/config", "/usr/local/tfabric/tools/run"})

    def test_kernel_sockets_need_nothing_of_the_node(self):
        service, job = self.all["sockets-job.yaml"]
        pod = job["spec"]["template"]["spec"]
        container, = pod["containers"]
        self.assertNotIn("hostNetwork", pod)
        self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})
        self.assertEqual([list(volume) for volume in pod["volumes"]], [["name", "emptyDir"]])
        self.assertFalse([name for name in container["resources"]["limits"] if name.startswith("hugepages")])
        self.assertEqual({one["name"]: one["value"] for one in container["env"]}["ZTCP_TRANSPORT"], "sockets")
        self.assertEqual(pod["subdomain"], service["metadata"]["name"])
        self.assertEqual(job["spec"]["template"]["metadata"]["labels"], service["spec"]["selector"])
        self.assertIn(f"--nnodes {job['spec']['completions']} ", container["args"][0])
        self.assertIn(f"--nproc-per-node {container['resources']['limits']['nvidia.com/gpu']} ", container["args"][0])
        self.assertIn(f"--master-addr {pod['subdomain']}-0.{pod['subdomain']}", container["args"][0])

    def test_resources_fit_together(self):
        limits = self.container["resources"]["limits"]
        # The API demands it of hugepages, and cpu or memory beside them.
        self.assertEqual(limits, self.container["resources"]["requests"])
        gpus = int(limits["nvidia.com/gpu"])
        self.assertEqual(limits["hugepages-1Gi"], f"{5 * gpus}Gi")
        config = json.loads(self.documents["ConfigMap"]["data"]["config.json"])
        resource = config["resourceList"][0]
        self.assertEqual(int(limits[f"{resource['resourcePrefix']}/{resource['resourceName']}"]), gpus)
        self.assertIn(f"--nproc-per-node {gpus}", self.container["args"][0])

    def test_names_refer_to_objects_that_exist(self):
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
