"""Checks the manifests of deploy/kubernetes as they are rendered: `make lint` calls it. No cluster is asked.

Each resource is held against the schema of its kind, strictly: a misspelt field is refused. What a resource names must
be there: ConfigMaps, Secrets and their keys, volumes, ports, pods. Containers are held against the programs: the words
of their commands, and their settings.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import jsonschema
import kubernetes_validate
import kubernetes_validate.utils
import yaml

from fraud_filter.cli.main import cli
from fraud_filter.config import Settings, env_name, load
from fraud_filter.errors import FraudFilterError
from fraud_filter.home import HOME
from tools.crds import CRDS
from tools.manifests import KUBERNETES

VERSION = "1.37"
OVERLAYS = KUBERNETES / "overlays"
_COMPOSE = ("docker-compose.yml", "docker-compose.secure.yml")
_APP, _SPARK = "fraud-filter-app", "fraud-filter-spark"
#: Where programs find the folder `conf`, by a relative name: they start in /tmp.
_START, _CONF = "/tmp", "conf/"  # noqa: S108 - of the container
_SECRETS = "/run/secrets/"
#: Fields that name another resource, and of which kind it is.
_REFERENCES = {
    "configMap": "ConfigMap",
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "secret": "Secret",
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
    "persistentVolumeClaim": "PersistentVolumeClaim",
}
# It reads Kubernetes' definitions again for each resource.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)


@dataclass(frozen=True)
class Pods:
    """The pods of a workload: their labels, and the names of their ports."""

    labels: Mapping[str, str]
    ports: frozenset[str]


@dataclass(frozen=True)
class Manifests:
    """All resources that are applied together."""

    resources: list[dict[str, Any]]
    #: Of each resource that can be named: its keys, by kind and name.
    keys: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    pods: list[Pods] = field(default_factory=list)

    def __post_init__(self) -> None:
        for resource in self.resources:
            kind, name = resource["kind"], resource["metadata"]["name"]
            content = {**(resource.get("data") or {}), **(resource.get("stringData") or {})}
            self.keys[kind, name] = set(content)
            # What Strimzi's operator makes.
            if kind == "KafkaUser":
                self.keys["Secret", name] = {"password", "sasl.jaas.config"}
            if kind == "Kafka":
                self.keys["Secret", f"{name}-cluster-ca-cert"] = {"ca.crt", "ca.p12", "ca.password"}
                labels = {"strimzi.io/name": f"{name}-kafka", "strimzi.io/cluster": name}
                self.pods.append(Pods(labels, frozenset({"tcp-prometheus"})))
            if template := pod_template(resource):
                ports = {port["name"] for one in template["spec"]["containers"] for port in one.get("ports", [])}
                self.pods.append(Pods(template["metadata"]["labels"], frozenset(ports)))

    def config(self, name: str) -> dict[str, str]:
        """The content of a ConfigMap; none where there is none."""
        found = (one for one in self.resources if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", name))
        return next(found, {}).get("data") or {}

    def problems(self) -> Iterator[str]:
        """A line for each thing that is wrong, with the resource it is in."""
        for resource in self.resources:
            checks = (_schema, _references, _selectors, _containers)
            where = f"{resource['kind']}/{resource['metadata']['name']}"
            yield from (f"{where}: {problem}" for check in checks for problem in check(resource, self))


def pod_template(resource: Mapping[str, Any]) -> dict[str, Any] | None:
    """The pods of a workload, as it describes them."""
    template: dict[str, Any] | None = (resource.get("spec") or {}).get("template")
    return template if template and "containers" in template.get("spec", {}) else None


def render(overlay: Path) -> list[dict[str, Any]]:
    """The resources of a folder, as `kubectl apply -k` would send them."""
    kubectl = subprocess.run([HOME / ".ci/kubectl"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    rendered = subprocess.run([kubectl, "kustomize", overlay], check=True, stdout=subprocess.PIPE).stdout
    return list(yaml.load_all(rendered, yaml.CSafeLoader))


def secrets() -> dict[str, Any]:
    """The one Secret that a user makes beforehand."""
    script: list[str | Path] = [sys.executable, KUBERNETES / "spark_secret.py"]
    made: dict[str, Any] = json.loads(subprocess.run(script, check=True, stdout=subprocess.PIPE).stdout)
    return made


@functools.cache
def _crds() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CRDS.read_text())
    return found


def _schema(resource: dict[str, Any], _: Manifests) -> Iterator[str]:
    schema = _crds().get(f"{resource['apiVersion']}/{resource['kind']}")
    try:
        if schema is None:
            kubernetes_validate.validate(resource, VERSION, strict=True)
        else:
            kubernetes_validate.validate(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": resource["metadata"]}, VERSION, strict=True
            )
            jsonschema.Draft202012Validator(schema).validate(resource)
    except jsonschema.ValidationError as error:
        yield f"{'.'.join(map(str, error.absolute_path)) or 'top level'}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        yield error.message


def _named(node: Any) -> Iterator[tuple[str, str, list[str]]]:
    """Kind, name and keys of each resource that is named somewhere in a node."""
    if isinstance(node, list):
        for item in node:
            yield from _named(item)
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _named(value)
            if name in _REFERENCES and isinstance(value, dict):
                given = value.get("name") or value.get("secretName") or value.get("claimName")
                keys = [item["key"] for item in value.get("items", [])] + ([value["key"]] if "key" in value else [])
                if given:
                    yield _REFERENCES[name], given, keys


def _references(resource: dict[str, Any], manifests: Manifests) -> Iterator[str]:
    for kind, name, keys in _named(resource.get("spec")):
        there = manifests.keys.get((kind, name))
        if there is None:
            yield f"there is no {kind} {name}"
        else:
            yield from (f"{kind} {name} has no {key}" for key in keys if key not in there)
    service = (resource.get("spec") or {}).get("serviceName")
    if service and ("Service", service) not in manifests.keys:
        yield f"there is no Service {service}"


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return all(labels.get(name) == value for name, value in selector.get("matchLabels", {}).items()) and all(
        labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", [])
    )


def _chosen(resource: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The selectors of a resource that are for pods of these manifests."""
    spec = resource.get("spec") or {}
    match resource["kind"]:
        case "Service":
            yield {"matchLabels": spec["selector"]}
        case "PodDisruptionBudget" | "PodMonitor" | "StatefulSet" | "Deployment":
            yield spec["selector"]
        case "NetworkPolicy":
            yield spec["podSelector"]
            for rule in [*spec.get("ingress", []), *spec.get("egress", [])]:
                for peer in [*rule.get("from", []), *rule.get("to", [])]:
                    if "podSelector" in peer and "namespaceSelector" not in peer:
                        yield peer["podSelector"]


def _selectors(resource: dict[str, Any], manifests: Manifests) -> Iterator[str]:
    for selector in _chosen(resource):
        pods = [pods for pods in manifests.pods if _matches(selector, pods.labels)]
        if not pods:
            yield f"no pod has the labels {json.dumps(selector)}"
        for endpoint in resource["spec"].get("podMetricsEndpoints", []):
            if lacking := [pods for pods in pods if endpoint["port"] not in pods.ports]:
                yield f"{len(lacking)} of its pods have no port {endpoint['port']}"


def _containers(resource: dict[str, Any], manifests: Manifests) -> Iterator[str]:
    template = pod_template(resource)
    if not template:
        return
    if template["spec"].get("enableServiceLinks", True):
        yield "enableServiceLinks: Spark would read the variables of services as its own"
    for container in template["spec"]["containers"]:
        yield from _container(container, template["spec"].get("volumes", []), manifests)


def _container(container: dict[str, Any], volumes: Sequence[Any], manifests: Manifests) -> Iterator[str]:
    image = container["image"].rpartition("/")[2].partition(":")[0]
    words: list[str] = container.get("args", [])
    environment = _environment(container, manifests)
    if "command" in container:
        yield "command: it would replace the image's entrypoint; give args"
    if unknown := sorted(set(environment) - _known()):
        yield f"env: no program reads {', '.join(unknown)}"
    files = set(_files(container, volumes, manifests))
    for name, value in environment.items():
        file = f"{_START}/{value}" if value.startswith(_CONF) else value
        if file.startswith((_SECRETS, f"{_START}/{_CONF}")) and file not in files:
            yield f"{name}={value}: no volume has that file"
    ports = {port["name"] for port in container.get("ports", [])}
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container.get(kind, {})
        for asked in (probe.get("httpGet"), probe.get("tcpSocket")):
            if asked and asked["port"] not in ports:
                yield f"{kind}: there is no port {asked['port']}"
    if image == _APP and words[:1] == ["fraud-filter"]:
        yield from _refusal(words[1:], environment)
    elif image != _SPARK or words not in (["master"], ["worker"]):
        yield f"image {image} has no program {' '.join(words)!r}"


def _environment(container: Mapping[str, Any], manifests: Manifests) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= manifests.config(source.get("configMapRef", {}).get("name", ""))
    return found | {one["name"]: one.get("value", "") for one in container.get("env", [])}


@functools.cache
def _known() -> frozenset[str]:
    """The program's settings, and what the Compose stack gives the same images."""

    class Loader(yaml.SafeLoader):
        """Reads `!reset` as nothing."""

    Loader.add_constructor("!reset", lambda _, __: None)
    stack, secure = (yaml.load((HOME / file).read_text(), Loader)["services"] for file in _COMPOSE)  # noqa: S506 - a safe one
    ours = [name for name, service in stack.items() if service["image"].startswith((_APP, _SPARK))]
    given = {env_name(setting) for setting in Settings.model_fields}
    for name in ours:
        given |= {*stack[name]["environment"], *secure.get(name, {}).get("environment", {})}
    return frozenset(given)


def _files(container: Mapping[str, Any], volumes: Sequence[Any], manifests: Manifests) -> Iterator[str]:
    """The files that volumes of Secrets and ConfigMaps give a container."""
    mounted = {one["name"]: one["mountPath"] for one in container.get("volumeMounts", [])}
    for volume in volumes:
        if volume["name"] not in mounted:
            continue
        for source in volume.get("projected", {}).get("sources", [volume]):
            for item in source.get("secret", {}).get("items", []):
                yield f"{mounted[volume['name']]}/{item['path']}"
            for key in manifests.config(source.get("configMap", {}).get("name", "")):
                yield f"{mounted[volume['name']]}/{key}"


@contextmanager
def _only(environment: Mapping[str, str]) -> Iterator[None]:
    """The program's environment is this one for a while."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({**environment, "FRAUD_ENV_FILE": os.devnull})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _refusal(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """What the program would say of its command line and its settings."""
    command: click.Command = cli
    rest = list(words)
    try:
        while isinstance(command, click.Group):
            _, found, rest = command.resolve_command(click.Context(command), rest)
            assert found  # noqa: S101 - otherwise it is an error
            command = found
        with _only(environment):
            given = command.make_context(command.name, rest).params
            load({name: value for name, value in given.items() if name in Settings.model_fields and value is not None})
    except click.ClickException as error:
        yield f"fraud-filter {' '.join(words)}: {error.format_message()}"
    except FraudFilterError as error:
        yield str(error)


def main() -> None:
    """Prints what is wrong with each overlay; exit code 1 where something is."""
    wrong = [
        f"{overlay.name}: {problem}"
        for overlay in sorted(OVERLAYS.iterdir())
        for problem in Manifests([*render(overlay), secrets()]).problems()
    ]
    for problem in wrong:
        click.echo(problem, err=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
