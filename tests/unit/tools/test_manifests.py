"""Kubernetes' manifests: what is made from other files, and that the check of `make lint` finds what is wrong."""

from __future__ import annotations

import base64
import copy
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
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


def pod(resources: Resources, kind: str, name: str) -> Any:
    return of(resources, kind, name)["spec"]["template"]["spec"]


def filter_container(resources: Resources) -> Any:
    return pod(resources, "StatefulSet", "fraud-filter")["containers"][0]


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


def misspell_a_field(resources: Resources) -> str:
    pod(resources, "StatefulSet", "fraud-filter")["terminationGracePeriodSecond"] = 70
    return r"StatefulSet/fraud-filter: .*terminationGracePeriodSecond.* unexpected"


def misspell_strimzi_s(resources: Resources) -> str:
    of(resources, "Kafka", "kafka")["spec"]["kafka"]["listeners"][0]["networkPolicyPeer"] = []
    return r"Kafka/kafka: spec\.kafka\.listeners\.0: .*networkPolicyPeer.* unexpected"


def misspell_strimzi_s_labels(resources: Resources) -> str:
    metadata = of(resources, "KafkaTopic", "payments")["metadata"]
    metadata["label"] = metadata.pop("labels")
    return r"KafkaTopic/payments: metadata: .*'label' was unexpected"


def give_a_right_that_is_none(resources: Resources) -> str:
    of(resources, "KafkaUser", "kafka-probe")["spec"]["authorization"]["acls"][0]["operations"] = ["Reed"]
    return r"KafkaUser/kafka-probe: .*'Reed' is not one of"


def misspell_the_operator_s(resources: Resources) -> str:
    of(resources, "PodMonitor", "kafka")["spec"]["podMetricsEndpoints"][0]["intervall"] = "5s"
    return r"PodMonitor/kafka: .*intervall.* unexpected"


def take_a_version_that_is_none(resources: Resources) -> str:
    of(resources, "PodDisruptionBudget", "fraud-filter")["apiVersion"] = "policy/v1beta1"
    return r"PodDisruptionBudget/fraud-filter: Couldn't find schema"


def give_a_setting_that_is_none(resources: Resources) -> str:
    of(resources, "ConfigMap", "settings")["data"]["FRAUD_MOD"] = "real-time"
    return r"StatefulSet/fraud-filter: FRAUD_MOD in the environment is no setting"


def give_a_value_that_is_none(resources: Resources) -> str:
    of(resources, "ConfigMap", "settings")["data"]["FRAUD_MODE"] = "realtime"
    return r"StatefulSet/fraud-filter: setting mode .*'realtime' is not accepted"


def give_what_no_program_reads(resources: Resources) -> str:
    filter_container(resources)["env"].append({"name": "SPARK_SECRETS_FILE", "value": "/run/secrets/spark-secret"})
    return r"StatefulSet/fraud-filter: env: no program reads SPARK_SECRETS_FILE"


def call_no_verb(resources: Resources) -> str:
    filter_container(resources)["args"] = ["fraud-filter", "rnu"]
    return r"StatefulSet/fraud-filter: fraud-filter rnu: No such command"


def give_no_option(resources: Resources) -> str:
    filter_container(resources)["args"] = ["fraud-filter", "run", "--stand-by"]
    return r"StatefulSet/fraud-filter: fraud-filter run --stand-by: No such option"


def replace_the_entrypoint(resources: Resources) -> str:
    container = filter_container(resources)
    container["command"] = container["args"]
    return r"StatefulSet/fraud-filter: command: "


def start_no_part_of_spark(resources: Resources) -> str:
    pod(resources, "StatefulSet", "spark-worker")["containers"][0]["args"] = ["slave"]
    return r"StatefulSet/spark-worker: image fraud-filter-spark has no program 'slave'"


def miss_a_secret(resources: Resources) -> str:
    resources.remove(of(resources, "KafkaUser", "kafka-probe"))
    return r"Deployment/probe: there is no Secret kafka-probe"


def miss_what_is_made_beforehand(resources: Resources) -> str:
    resources.remove(of(resources, "Secret", "spark"))
    return r"StatefulSet/spark-master: there is no Secret spark"


def miss_a_key_of_a_secret(resources: Resources) -> str:
    del of(resources, "Secret", "spark")["stringData"]["spark-ui-token"]
    return r"StatefulSet/spark-worker: Secret spark has no spark-ui-token"


def name_a_secret_s_file_that_is_none(resources: Resources) -> str:
    of(resources, "ConfigMap", "settings")["data"]["FRAUD_KAFKA_SSL_CA"] = "/run/secrets/ca.crt"
    return r"Deployment/probe: FRAUD_KAFKA_SSL_CA=/run/secrets/ca.crt: no volume has that file"


def name_rules_that_are_not_there(resources: Resources) -> str:
    of(resources, "ConfigMap", "settings")["data"]["FRAUD_RULES"] = "conf/rules.yml"
    return r"StatefulSet/fraud-filter: FRAUD_RULES=conf/rules.yml: no volume has that file"


def miss_a_config_map(resources: Resources) -> str:
    resources.remove(of(resources, "ConfigMap", "kafka-exporter"))
    return r"Kafka/kafka: there is no ConfigMap kafka-exporter"


def miss_a_volume(resources: Resources) -> str:
    resources.remove(of(resources, "PersistentVolumeClaim", "spark-master"))
    return r"StatefulSet/spark-master: there is no PersistentVolumeClaim spark-master"


def miss_a_service(resources: Resources) -> str:
    resources.remove(of(resources, "Service", "spark-worker"))
    return r"StatefulSet/spark-worker: there is no Service spark-worker"


def choose_no_pod(resources: Resources) -> str:
    of(resources, "NetworkPolicy", "kafka")["spec"]["podSelector"]["matchLabels"] = {"network": "kafka"}
    return r"NetworkPolicy/kafka: no pod has the labels"


def scrape_no_port(resources: Resources) -> str:
    of(resources, "PodMonitor", "spark")["spec"]["podMetricsEndpoints"][0]["port"] = "metrics"
    return r"PodMonitor/spark: 2 of its pods have no port metrics"


def probe_no_port(resources: Resources) -> str:
    filter_container(resources)["livenessProbe"]["httpGet"]["port"] = "health"
    return r"StatefulSet/fraud-filter: livenessProbe: there is no port health"


def link_services(resources: Resources) -> str:
    del pod(resources, "StatefulSet", "spark-master")["enableServiceLinks"]
    return r"StatefulSet/spark-master: enableServiceLinks"


@pytest.mark.parametrize(
    "change",
    [
        misspell_a_field, misspell_strimzi_s, misspell_strimzi_s_labels, misspell_the_operator_s,
        give_a_right_that_is_none, take_a_version_that_is_none, give_a_setting_that_is_none, give_a_value_that_is_none,
        give_what_no_program_reads, call_no_verb, give_no_option, replace_the_entrypoint, start_no_part_of_spark,
        miss_a_secret, miss_what_is_made_beforehand, miss_a_key_of_a_secret, name_a_secret_s_file_that_is_none,
        name_rules_that_are_not_there, miss_a_config_map, miss_a_volume, miss_a_service, choose_no_pod, scrape_no_port,
        probe_no_port, link_services,
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_what_is_wrong_is_found(resources: Resources, change: Callable[[Resources], str]) -> None:
    expected = change(resources)
    found = list(Manifests(resources).problems())
    assert any(re.match(expected, problem) for problem in found), found


def test_files_of_conf_are_found(resources: Resources) -> None:
    name_rules_that_are_not_there(resources)
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
    spec = pod(rendered, "StatefulSet", "fraud-filter")
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
