# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The part of the Kubernetes API that the examples use, and a check of documents against it.

The facts below are field names, types, required fields and allowed values, in a form of our own.
Run as a program this compares them with the API's specification, the OpenAPI file that Kubernetes
publishes (api/openapi-spec/swagger.json of kubernetes/kubernetes; clients ship copies):

  kubernetes_api.py SWAGGER_JSON...

Done on 2026-11-20 with the files of Kubernetes 1.32 and 1.36 (kubernetes/swagger.json.unprocessed
of kubernetes-client/python at v32.0.0 and v36.0.3): 19 definitions and 80 fields agree with each.
"""
import json
import pathlib
import re
import sys

# A type is string, boolean, int32, int64 or Quantity; a definition below; [type] a list, {type} a
# map; (values) strings. A field with ! is required. Other fields of the API are refused here, too.
API = {
    "core.v1.ConfigMap": {
        "apiVersion": "string", "kind": "string", "metadata": "ObjectMeta", "data": "{string}",
        "binaryData": "{string}", "immutable": "boolean"},
    "core.v1.Service": {"apiVersion": "string", "kind": "string", "metadata": "ObjectMeta", "spec": "ServiceSpec"},
    "core.v1.ServiceSpec": {
        "clusterIP": "string", "selector": "{string}", "publishNotReadyAddresses": "boolean",
        "type": ("ExternalName", "ClusterIP", "NodePort", "LoadBalancer")},
    "batch.v1.Job": {"apiVersion": "string", "kind": "string", "metadata": "ObjectMeta", "spec": "JobSpec"},
    "batch.v1.JobSpec": {
        "completionMode": ("NonIndexed", "Indexed"), "completions": "int32", "parallelism": "int32",
        "backoffLimit": "int32", "ttlSecondsAfterFinished": "int32", "suspend": "boolean",
        "template!": "PodTemplateSpec"},
    "core.v1.PodTemplateSpec": {"metadata": "ObjectMeta", "spec": "PodSpec"},
    "core.v1.PodSpec": {
        "containers!": "[Container]", "volumes": "[Volume]", "securityContext": "PodSecurityContext",
        "restartPolicy": ("Always", "OnFailure", "Never"), "subdomain": "string", "hostname": "string",
        "hostNetwork": "boolean", "hostIPC": "boolean", "hostPID": "boolean", "nodeSelector": "{string}"},
    "core.v1.PodSecurityContext": {
        "supplementalGroups": "[int64]", "seccompProfile": "SeccompProfile", "fsGroup": "int64",
        "runAsUser": "int64", "runAsGroup": "int64", "runAsNonRoot": "boolean"},
    "core.v1.SeccompProfile": {
        "type!": ("Localhost", "RuntimeDefault", "Unconfined"), "localhostProfile": "string"},
    "core.v1.Container": {
        "name!": "string", "image": "string", "command": "[string]", "args": "[string]", "env": "[EnvVar]",
        "securityContext": "SecurityContext", "resources": "ResourceRequirements",
        "volumeMounts": "[VolumeMount]", "workingDir": "string"},
    "core.v1.EnvVar": {"name!": "string", "value": "string"},
    "core.v1.SecurityContext": {
        "allowPrivilegeEscalation": "boolean", "privileged": "boolean", "capabilities": "Capabilities",
        "runAsUser": "int64", "runAsGroup": "int64"},
    "core.v1.Capabilities": {"add": "[string]", "drop": "[string]"},
    "core.v1.ResourceRequirements": {"limits": "{Quantity}", "requests": "{Quantity}"},
    "core.v1.VolumeMount": {
        "name!": "string", "mountPath!": "string", "readOnly": "boolean", "subPath": "string"},
    "core.v1.Volume": {
        "name!": "string", "hostPath": "HostPathVolumeSource", "emptyDir": "EmptyDirVolumeSource"},
    # The values of hostPath's type and of emptyDir's medium are only in the API's documents.
    "core.v1.HostPathVolumeSource": {"path!": "string", "type": "string"},
    "core.v1.EmptyDirVolumeSource": {"medium": "string", "sizeLimit": "Quantity"},
    "meta.v1.ObjectMeta": {
        "name": "string", "namespace": "string", "labels": "{string}", "annotations": "{string}"},
}
KINDS = {("v1", "ConfigMap"): "ConfigMap", ("v1", "Service"): "Service", ("batch/v1", "Job"): "Job"}
DEFINITIONS = {name.split(".")[-1]: fields for name, fields in API.items()}
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")


def is_integer(value, bits):
    # bool is an int to isinstance().
    return type(value) is int and -1 << bits - 1 <= value < 1 << bits - 1


PLAIN = {"string": lambda v: isinstance(v, str), "boolean": lambda v: isinstance(v, bool),
         "int32": lambda v: is_integer(v, 32), "int64": lambda v: is_integer(v, 64),
         "Quantity": lambda v: isinstance(v, str) and QUANTITY.fullmatch(v)}


def misfits(value, kind, where):
    """The parts of a value that do not fit its type, by path."""
    if isinstance(kind, tuple):
        return [] if value in kind else [f"{where}: {value!r} is none of {', '.join(kind)}"]
    if kind in PLAIN:
        return [] if PLAIN[kind](value) else [f"{where}: {value!r} is no {kind}"]
    if kind[0] == "[":
        if not isinstance(value, list):
            return [f"{where}: wanted a list"]
        return [m for i, v in enumerate(value) for m in misfits(v, kind[1:-1], f"{where}[{i}]")]
    if not isinstance(value, dict):
        return [f"{where}: wanted an object"]
    if kind[0] == "{":
        return [m for name, v in value.items() for m in misfits(v, kind[1:-1], f"{where}.{name}")]
    fields = {name.rstrip("!"): of for name, of in DEFINITIONS[kind].items()}
    found = [f"{where}.{name[:-1]}: missing" for name in DEFINITIONS[kind]
             if name.endswith("!") and name[:-1] not in value]
    for name, v in value.items():
        found += misfits(v, fields[name], f"{where}.{name}") if name in fields else [f"{where}.{name}: no such field"]
    return found


def judge(document):
    """The faults of a document; empty when there are none."""
    kind = KINDS.get((document.get("apiVersion"), document.get("kind")))
    return misfits(document, kind, kind) if kind else [f"{document.get('kind')}: no such kind here"]


def form(schema):
    """The type of a field of the specification, in the notation above."""
    if "$ref" in schema:
        return schema["$ref"].split(".")[-1]
    if schema["type"] == "array":
        return f"[{form(schema['items'])}]"
    if schema["type"] == "object":
        return f"{{{form(schema['additionalProperties'])}}}"
    return schema["format"] if schema["type"] == "integer" else schema["type"]


def differences(specification):
    """(number of fields compared, statements above that the specification does not contain)."""
    compared, found = 0, []
    for name, fields in API.items():
        full, = [n for n in specification if re.fullmatch(rf"io\.k8s\..*\b{re.escape(name)}", n)]
        must = {field[:-1] for field in fields if field.endswith("!")}
        if must != set(specification[full].get("required", [])):
            found.append(f"{name}: {specification[full].get('required')} must be there")
        for field, kind in fields.items():
            compared += 1
            theirs = specification[full]["properties"].get(field.rstrip("!"))
            if theirs is None:
                found.append(f"{name}.{field}: no such field")
            elif isinstance(kind, tuple):
                said = set(re.findall(r"\w+", theirs["description"]))
                found += [f"{name}.{field}: no value {value}" for value in kind if value not in said]
            elif form(theirs) != kind:
                found.append(f"{name}.{field}: {form(theirs)}, not {kind}")
    return compared, found


def main():
    wrong = 0
    for path in sys.argv[1:]:
        compared, found = differences(json.loads(pathlib.Path(path).read_text())["definitions"])
        print(*found, sep="\n", end="\n" if found else "")
        print(f"{path}: {len(API)} definitions, {compared} fields, {len(found)} differences")
        wrong += len(found)
    return 1 if wrong or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
