"""Writes what Kubernetes' manifests have from elsewhere: rules, topics and users; `make generated` calls it.

Rules are Prometheus' own files, topics and users those of kafka/: as resources of the Prometheus operator and of
Strimzi.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from fraud_filter.config import Settings
from fraud_filter.home import HOME
from fraud_filter.kafka.access import User, load_users
from fraud_filter.kafka.topics import TopicSpec, load_topics

KUBERNETES = HOME / "deploy/kubernetes"
RULES = HOME / "monitoring/prometheus/rules"
#: Of a topic: each record on three nodes, so that one may be lost.
REPLICAS = 3
#: None of the environment's. Approved records have a topic: whether they are written is a setting of the filter's.
_ALL = Settings.model_construct(emit="all")
_CLUSTER = {"strimzi.io/cluster": "kafka"}


def rules() -> Iterator[dict[str, Any]]:
    """One PrometheusRule with the groups of all files."""
    groups = [group for file in sorted(RULES.glob("*.yml")) for group in yaml.safe_load(file.read_text())["groups"]]
    yield {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "fraud-filter"},
        "spec": {"groups": groups},
    }


def topics() -> Iterator[dict[str, Any]]:
    """A KafkaTopic for each topic of the file."""
    for topic in load_topics(_ALL):
        yield _strimzi("KafkaTopic", topic.name, _topic(topic))


def users() -> Iterator[dict[str, Any]]:
    """A KafkaUser for each user of the file. The operator makes a Secret of its name, with the password."""
    for user in load_users(_ALL):
        yield _strimzi("KafkaUser", user.name, _user(user))


def _strimzi(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "labels": dict(_CLUSTER)}
    return {"apiVersion": "kafka.strimzi.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _topic(topic: TopicSpec) -> dict[str, Any]:
    return {"partitions": topic.partitions, "replicas": REPLICAS, "config": dict(topic.config)}


def _user(user: User) -> dict[str, Any]:
    rights = [("topic", name, "literal", allowed) for name, allowed in user.topics.items()] + [
        ("group", name, "prefix", allowed) for name, allowed in user.group_prefixes.items()
    ]
    return {
        "authentication": {"type": "scram-sha-512"},
        "authorization": {
            "type": "simple",
            "acls": [
                {
                    "resource": {"type": kind, "name": name, "patternType": pattern},
                    "operations": [operation.title().replace("_", "") for operation in allowed],
                }
                for kind, name, pattern, allowed in rights
            ],
        },
    }


#: Each file, and what makes its documents.
MADE: dict[Path, Callable[[], Iterator[dict[str, Any]]]] = {
    KUBERNETES / "monitoring/rules.yml": rules,
    KUBERNETES / "kafka/topics.yml": topics,
    KUBERNETES / "kafka/users.yml": users,
}


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and a list's items deeper than its name."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's way
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - each place has its own
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def text(make: Callable[[], Iterator[dict[str, Any]]]) -> str:
    """The content of a file."""
    head = "# Written by `make generated` (tools/manifests.py).\n# yamllint disable rule:line-length\n"
    return head + yaml.dump_all(make(), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


if __name__ == "__main__":
    for written, make in MADE.items():
        written.write_text(text(make), encoding="utf-8")
