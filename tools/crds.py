"""Writes tools/schemas/crds.json: the schemas of the resources of Strimzi and of the Prometheus operator that we use.

Run by hand as `python tools/crds.py` after a new version of either. It needs the network, Go and Java 21 or newer
(JAVA_HOME). Strimzi's are made by its own generator, whose jars tools/schemas/jgo.lock.toml has; the operator's are
files of its Go module. Descriptions and what a cluster alone writes (status) are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fraud_filter.home import HOME
from fraud_filter.java.jars import LOCK_NAME, resolve_jars

SCHEMAS = HOME / "tools/schemas"
CRDS = SCHEMAS / "crds.json"
#: The newest whole module that is served; newer ones are of Go's types alone.
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
_OPERATOR_FILES = ("podmonitors-crd.json", "prometheusrules-crd.json")
_GENERATOR = "io.strimzi.crdgenerator.CrdGenerator"
_MODEL = "io.strimzi.api.kafka.model"
#: Below these a schema names some of its fields.
_ALTERNATIVES = ("oneOf", "anyOf", "allOf", "not")
_STRIMZI = ("kafka.Kafka", "nodepool.KafkaNodePool", "topic.KafkaTopic", "user.KafkaUser")


def _strimzi() -> Iterator[Any]:
    jars = ":".join(map(str, resolve_jars(SCHEMAS / LOCK_NAME)))
    java = Path(os.environ["JAVA_HOME"]) / "bin/java"
    with tempfile.TemporaryDirectory() as folder:
        files = {f"{_MODEL}.{kind}": Path(folder) / kind for kind in _STRIMZI}
        outputs = [f"{name}={file}" for name, file in files.items()]
        subprocess.run([java, "-cp", jars, _GENERATOR, "--yaml", *outputs], check=True)
        yield from (yaml.safe_load(file.read_text()) for file in files.values())


def _operator() -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as outside:  # no module of ours
        command = ["go", "mod", "download", "-json", OPERATOR]
        found = subprocess.run(command, cwd=outside, check=True, stdout=subprocess.PIPE)
    folder = Path(json.loads(found.stdout)["Dir"]) / "jsonnet/prometheus-operator"
    yield from (json.loads((folder / name).read_text()) for name in _OPERATOR_FILES)


def _strict(schema: Any, *, whole: bool = True) -> Any:
    """As JSON Schema has it, where a field that is not named is refused, as a cluster refuses it.

    Args:
        whole: whether the schema names all fields, which one of several alternatives does not.
    """
    if isinstance(schema, list):
        return [_strict(item, whole=whole) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    kept = {
        name: _strict(value, whole=whole and name not in _ALTERNATIVES)
        for name, value in schema.items()
        if name not in ("description", "properties") and not name.startswith("x-")
    }
    if "properties" in schema:
        kept["properties"] = {name: _strict(value, whole=whole) for name, value in schema["properties"].items()}
        if whole and not schema.get("x-kubernetes-preserve-unknown-fields"):
            kept.setdefault("additionalProperties", False)
    return kept


def schemas(crds: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """Each kind by `apiVersion/kind`, with its schema."""
    for crd in crds:
        for version in crd["spec"]["versions"]:
            schema = _strict(version["schema"]["openAPIV3Schema"])
            schema["properties"].pop("status", None)
            yield f"{crd['spec']['group']}/{version['name']}/{crd['spec']['names']['kind']}", schema


def main() -> None:
    """Writes the file, a line for each kind."""
    found = {**dict(schemas(_strimzi())), **dict(schemas(_operator()))}
    lines = [f"{json.dumps(name)}: {json.dumps(schema, separators=(',', ':'))}" for name, schema in found.items()]
    CRDS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
