"""Kubernetes' manifests: what is made from other files, and that the check of `make lint` finds what is wrong."""

from __future__ import annotations

import base64
import copy
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import yaml
from dotenv import dotenv_values

from fraud_filter.home import HOME
from tools import check_manifests, manifests
from tools.check_manifests import Manifests, pod_template, render, secrets
from tools.crds import OPERATOR, SCHEMAS

Resources = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rendered() -> Resources:
    """All that the overlay `trial` has, and the Secret that is made beforehand."""
    found = subprocess.run([HOME / ".ci/kubectl"], capture_output=True, text=True, check=False, timeout=300)
    if found.returncode:
        pytest.skip(found.stderr.strip())
    return [*render(check_manifests.OVERLAYS / "trial"), secrets()]


@pytest.fixture
def resources(rendered: Resources) -> Resources:
    """The same, for a test to change."""
    return copy.deepcopy(rendered)


def of(resources: Resources, kind: str, name: str) -> Any:
    """The one resource of that kind whose name is this, or this and a hash."""
    pattern = re.compile(rf"{re.escape(name)}(-[a-z0-9]{{10}})?")
    [found] = [one for one in resources if one["kind"] == kind and pattern.fullmatch(one["metadata"]["name"])]
    return found


@pytest.mark.parametrize("file", manifests.MADE, ids=lambda file: file.name)
def test_what_is_made_from_other_files_is_what_they_say(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == manifests.text(manifests.MADE[file]), "run `make generated`"


def test_the_rules_are_those_of_prometheus() -> None:
    [made] = yaml.safe_load_all((manifests.KUBERNETES / "monitoring/rules.yml").read_text())
    files = sorted((HOME / "monitoring/prometheus/rules").glob("*.yml"))
    assert made["spec"]["groups"] == [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]


def test_nothing_is_wrong_with_what_ships(resources: Resources) -> None:
    assert list(Manifests(resources).problems()) == []


# -- one thing is made wrong, and is found


FILTER, SETTINGS = "StatefulSet/fraud-filter", "ConfigMap/settings"
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"
#: Of which resource, at which place in it ("": it is taken away as a whole), what is put there (`...`: nothing is left
#: there), and what is said of that.
WRONG: tuple[tuple[str, str, Any, str], ...] = (
    (FILTER, f"{POD}.terminationGracePeriodSecond", 70, f"{FILTER}: .*terminationGracePeriodSecond.* unexpected"),
    (
        *("Kafka/kafka", "spec.kafka.listeners.0.networkPolicyPeer", []),
        r"Kafka/kafka: spec\.kafka\.listeners\.0: .*networkPolicyPeer.* unexpected",
    ),
    ("KafkaTopic/payments", "metadata.label", {}, "KafkaTopic/payments: metadata: .*'label' was unexpected"),
    (
        *("KafkaUser/kafka-probe", "spec.authorization.acls.0.operations", ["Reed"]),
        "KafkaUser/kafka-probe: .*'Reed' is not one of",
    ),
    ("PodMonitor/kafka", "spec.podMetricsEndpoints.0.intervall", "5s", "PodMonitor/kafka: .*intervall.* unexpected"),
    (
        *("PodDisruptionBudget/fraud-filter", "apiVersion", "policy/v1beta1"),
        "PodDisruptionBudget/fraud-filter: Couldn't find schema",
    ),
    (SETTINGS, "data.FRAUD_MOD", "real-time", f"{FILTER}: FRAUD_MOD in the environment is no setting"),
    (SETTINGS, "data.FRAUD_MODE", "realtime", f"{FILTER}: setting mode .*'realtime' is not accepted"),
    (
        *(FILTER, f"{CONTAINER}.env.0", {"name": "SPARK_SECRETS_FILE", "value": "/run/secrets/spark-secret"}),
        f"{FILTER}: env: no program reads SPARK_SECRETS_FILE",
    ),
    (FILTER, f"{CONTAINER}.args", ["fraud-filter", "rnu"], f"{FILTER}: fraud-filter rnu: No such command"),
    (
        *(FILTER, f"{CONTAINER}.args", ["fraud-filter", "run", "--stand-by"]),
        f"{FILTER}: fraud-filter run --stand-by: No such option",
    ),
    (FILTER, f"{CONTAINER}.command", ["fraud-filter", "run"], f"{FILTER}: command: "),
    (
        *("StatefulSet/spark-worker", f"{CONTAINER}.args", ["slave"]),
        "StatefulSet/spark-worker: image fraud-filter-spark has no program 'slave'",
    ),
    ("KafkaUser/kafka-probe", "", ..., "Deployment/probe: there is no Secret kafka-probe"),
    ("Secret/spark", "", ..., "StatefulSet/spark-master: there is no Secret spark"),
    ("Secret/spark", "stringData.spark-ui-token", ..., "StatefulSet/spark-worker: Secret spark has no spark-ui-token"),
    (
        *(SETTINGS, "data.FRAUD_KAFKA_SSL_CA", "/run/secrets/ca.crt"),
        "Deployment/probe: FRAUD_KAFKA_SSL_CA=/run/secrets/ca.crt: no volume has that file",
    ),
    (SETTINGS, "data.FRAUD_RULES", "conf/rules.yml", f"{FILTER}: FRAUD_RULES=conf/rules.yml: no volume has that file"),
    ("ConfigMap/kafka-exporter", "", ..., "Kafka/kafka: there is no ConfigMap kafka-exporter"),
    (
        *("PersistentVolumeClaim/spark-master", "", ...),
        "StatefulSet/spark-master: there is no PersistentVolumeClaim spark-master",
    ),
    ("Service/spark-worker", "", ..., "StatefulSet/spark-worker: there is no Service spark-worker"),
    (
        *("NetworkPolicy/kafka", "spec.podSelector.matchLabels", {"network": "kafka"}),
        "NetworkPolicy/kafka: no pod has the labels",
    ),
    (
        *("PodMonitor/spark", "spec.podMetricsEndpoints.0.port", "metrics"),
        "PodMonitor/spark: 2 of its pods have no port metrics",
    ),
    (FILTER, f"{CONTAINER}.livenessProbe.httpGet.port", "health", f"{FILTER}: livenessProbe: there is no port health"),
    (
        *("StatefulSet/spark-master", f"{POD}.enableServiceLinks", ...),
        "StatefulSet/spark-master: enableServiceLinks",
    ),
)


def make_wrong(resources: Resources, name: str, place: str, value: object) -> None:
    kind, _, named = name.partition("/")
    at = of(resources, kind, named)
    if not place:
        resources.remove(at)
        return
    *inner, last = place.split(".")
    for step in inner:
        at = at[int(step)] if isinstance(at, list) else at[step]
    if value is ...:
        del at[last]
    else:
        at[int(last) if isinstance(at, list) else last] = value


@pytest.mark.parametrize(("name", "place", "value", "said"), WRONG)
def test_what_is_wrong_is_found(resources: Resources, name: str, place: str, value: object, said: str) -> None:
    make_wrong(resources, name, place, value)
    found = list(Manifests(resources).problems())
    assert any(re.match(said, problem) for problem in found), found


def test_files_of_conf_are_found(resources: Resources) -> None:
    make_wrong(resources, SETTINGS, "data.FRAUD_RULES", "conf/rules.yml")
    of(resources, "ConfigMap", "conf")["data"] = {"rules.yml": "rules: []"}
    assert list(Manifests(resources).problems()) == []


def test_lint_fails_and_says_where(
    rendered: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rendered, "there is a kubectl"
    overlay = tmp_path / "mine"
    overlay.mkdir()
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "mine"}}
    (overlay / "budget.yml").write_text(yaml.safe_dump(budget | {"spec": {"selector": {}, "minAvailible": 1}}))
    (overlay / "kustomization.yml").write_text("resources: [budget.yml]\n")
    monkeypatch.setattr(check_manifests, "OVERLAYS", tmp_path)
    with pytest.raises(SystemExit) as ended:
        check_manifests.main()
    assert ended.value.code == 1
    assert "mine: PodDisruptionBudget/mine: spec:" in capsys.readouterr().err


# -- what is the same as on the Compose stack


def workloads(resources: Resources) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource in resources:
        if template := pod_template(resource):
            yield resource["metadata"]["name"], template["spec"]


def test_every_pod_is_locked_down(rendered: Resources) -> None:
    found = dict(workloads(rendered))
    assert set(found) == {"fraud-filter", "generator", "probe", "spark-master", "spark-worker"}
    for spec in found.values():
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip


def test_memory_and_heaps_are_the_compose_stack_s(rendered: Resources) -> None:
    env = dotenv_values(HOME / ".env.example", interpolate=False)
    names = {"SPARK_WORKER_MEMORY": "SPARK_EXECUTOR_MEMORY"}
    heaps = 0
    for name, spec in workloads(rendered):
        [container] = spec["containers"]
        limit = str(env[f"{name.upper().replace('-', '_')}_MEM_LIMIT"]).replace("m", "Mi")
        assert container["resources"]["limits"]["memory"] == limit
        assert container["resources"]["requests"]["memory"] == limit
        for variable in container["env"]:
            if variable["name"].endswith("_MEMORY"):
                assert variable["value"] == env[names.get(variable["name"], variable["name"])]
                heaps += 1
    assert heaps == 5


def test_filters_are_two_on_different_nodes_and_have_time_to_end(rendered: Resources) -> None:
    assert of(rendered, "StatefulSet", "fraud-filter")["spec"]["replicas"] == 2
    spec = of(rendered, "StatefulSet", "fraud-filter")["spec"]["template"]["spec"]
    compose = yaml.safe_load((HOME / "docker-compose.yml").read_text())["services"]["fraud-filter"]
    assert f"{spec['terminationGracePeriodSeconds']}s" == compose["stop_grace_period"]
    assert spec["containers"][0]["args"] == compose["command"]
    [rule] = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert of(rendered, "PodDisruptionBudget", "fraud-filter")["spec"]["minAvailable"] == 1


def test_prometheus_knows_the_jobs_that_rules_name(rendered: Resources) -> None:
    jobs: set[str] = set()
    for monitor in (one for one in rendered if one["kind"] == "PodMonitor"):
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            [deployment, *named] = endpoint["relabelings"]
            assert deployment == {"sourceLabels": ["__meta_kubernetes_namespace"], "targetLabel": "deployment"}
            for label in named:
                by_pod = monitor["spec"]["selector"].get("matchExpressions", [{}])[0].get("values", [])
                jobs |= {label["replacement"]} if "replacement" in label else set(by_pod)
    assert jobs == {
        "fraud-filter", "standby", "probe", "generator", "kafka", "spark-driver", "spark-master", "spark-worker",
    }  # fmt: skip


def test_settings_replace_pods_when_they_change(rendered: Resources) -> None:
    for name in ("settings", "conf"):
        assert re.fullmatch(rf"{name}-[a-z0-9]{{10}}", of(rendered, "ConfigMap", name)["metadata"]["name"])


def test_the_token_of_the_healthchecks_is_signed_with_the_key_of_spark_s_pages() -> None:
    files = secrets()["stringData"]
    key = base64.urlsafe_b64decode(files["spark-ui-key"])
    assert jwt.decode(files["spark-ui-token"], key, ["HS256"]) == {"sub": "healthcheck"}
    assert len(key) == 32
    assert files != secrets()["stringData"]


def test_the_overlay_of_the_docs_gives_rules_of_the_user_s(rendered: Resources, tmp_path: Path) -> None:
    assert rendered, "there is a kubectl"
    for folder in ("deploy/kubernetes", "kafka", "monitoring/grafana/dashboards"):
        shutil.copytree(HOME / folder, tmp_path / folder)
    overlay = tmp_path / "deploy/kubernetes/overlays/mine"
    overlay.mkdir()
    [written] = re.findall(r"^```yaml\n(.*?)^```", (HOME / "docs/kubernetes.md").read_text(), re.MULTILINE | re.DOTALL)
    (overlay / "kustomization.yml").write_text(written)
    shutil.copy(HOME / "app/rules.yml", overlay)
    resources = [*render(overlay), secrets()]
    assert of(resources, "ConfigMap", "settings")["data"]["FRAUD_RULES"] == "conf/rules.yml"
    assert of(resources, "ConfigMap", "conf")["data"] == {"rules.yml": (HOME / "app/rules.yml").read_text()}
    assert list(Manifests(resources).problems()) == []


def allowed(policy: Any, direction: str) -> set[int]:
    """The ports that a NetworkPolicy opens."""
    rules = [port for rule in policy["spec"][direction] for port in rule["ports"]]
    return {number for port in rules for number in range(port["port"], port.get("endPort", port["port"]) + 1)}


def test_pods_are_in_the_networks_of_the_compose_stack(rendered: Resources) -> None:
    services = yaml.safe_load((HOME / "docker-compose.yml").read_text())["services"]
    for resource in rendered:
        if template := pod_template(resource):
            labels = template["metadata"]["labels"]
            networks = set(services[resource["metadata"]["name"]]["networks"])
            assert ("fraud-filter/network-spark" in labels) == ("spark" in networks)
            assert ("fraud-filter/network-kafka" in labels) == bool(networks & {"kafka", "load"})
            assert labels["app.kubernetes.io/part-of"] == "fraud-filter", "nobody reaches it but as is said"


def test_what_must_talk_may(rendered: Resources) -> None:
    """Spark's programs with each other, and Prometheus with whatever it scrapes; Kafka's clients with Kafka."""
    figures, others = allowed(of(rendered, "NetworkPolicy", "figures"), "ingress"), set()
    for _, spec in workloads(rendered):
        for port in spec["containers"][0]["ports"]:
            number = port["containerPort"]
            if port["name"] in ("metrics", "java"):
                assert number in figures
            else:
                others.add(number)
    spark = of(rendered, "NetworkPolicy", "spark")
    assert others == {7077, 7078, 7079, 7080, 8080} == allowed(spark, "ingress") == allowed(spark, "egress")
    for port in re.findall(r"^spark\.\w+\.port +(\d+)$", (HOME / "spark/conf/spark-defaults.conf").read_text(), re.M):
        assert int(port) in others
    [listener] = of(rendered, "Kafka", "kafka")["spec"]["kafka"]["listeners"]
    assert allowed(of(rendered, "NetworkPolicy", "kafka"), "egress") == {listener["port"]}
    bootstrap = of(rendered, "ConfigMap", "settings")["data"]["KAFKA_BOOTSTRAP_SERVERS"]
    assert bootstrap == f"kafka-kafka-bootstrap:{listener['port']}"


def test_the_docs_name_the_versions_that_the_manifests_are_checked_against() -> None:
    text = " ".join((HOME / "docs/kubernetes.md").read_text().split())
    strimzi = set(re.findall(r"io\.strimzi:[\w-]+:(\d+\.\d+)", (SCHEMAS / "jgo.toml").read_text()))
    operator = re.findall(r"@v(\d+\.\d+)", OPERATOR)
    [strimzi_version], [operator_version] = strimzi, operator
    assert f"Kubernetes {check_manifests.VERSION}, Strimzi {strimzi_version} " in text
    assert f"the Prometheus operator {operator_version}, " in text
