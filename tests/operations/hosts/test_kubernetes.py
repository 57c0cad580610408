"""Tests that the manifests of deploy/kubernetes match the image, the settings and each other."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import yaml

from tests.support.service.live import ROOT
from web.settings.environment import Settings, parse_settings
from web.settings.fields import get_setting_metadata

FOLDER = ROOT / "deploy" / "kubernetes"
CONTAINERFILE = (ROOT / "deploy" / "container" / "Containerfile").read_text(encoding="utf-8")
Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    texts = (file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.yaml")))
    return [each for text in texts for each in yaml.safe_load_all(text)]


def named(kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests() if each["kind"] == kind}


def pods() -> Iterator[tuple[str, Manifest]]:
    for each in manifests():
        if each["kind"] in {"Deployment", "Job"}:
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def settings_of(pod: Manifest) -> dict[str, str]:
    (container,) = pod["containers"]
    found: dict[str, str] = {}
    for source in container["envFrom"]:
        found |= named("ConfigMap")[source["configMapRef"]["name"]]["data"]
    return found | {each["name"]: each["value"] for each in container.get("env", ())}


def test_every_variable_is_a_setting_and_every_file_is_mounted() -> None:
    paths = {
        each.name.upper() for each in fields(Settings) if get_setting_metadata(each).kind.is_path
    }
    known = {each.name.upper() for each in fields(Settings)}
    known |= {f"{name}_FILE" for name in known - paths}
    for name, pod in pods():
        given = settings_of(pod)
        assert given.keys() <= known, name
        mounts = {each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
        for variable, value in given.items():
            if variable.endswith(("_FILE", "_PATH")):
                assert any(value.startswith(mount) for mount in mounts), variable


def test_the_settings_of_all_pods_are_valid(tmp_path: pytest.TempPathFactory) -> None:
    for _, pod in pods():
        given = settings_of(pod)
        plain = {name: value for name, value in given.items() if not name.endswith("_FILE")}
        filled = {
            "SECRET_KEY": "k" * 40,
            "DATABASE_URL": "postgresql://db.example/gatebell",
            "RATELIMIT_STORAGE_URI": "rediss://:x@store.example:6379/0",
            "INSTANCE_PATH": str(tmp_path),
        }
        assert parse_settings(plain | filled).migrate_on_start is False


def test_pods_are_confined_and_have_writable_mounts() -> None:
    (user,) = re.findall(r"useradd --system --uid (\d+)", CONTAINERFILE)
    for name, pod in pods():
        context, (container,) = pod["securityContext"], pod["containers"]
        assert context["runAsNonRoot"], name
        assert {context[each] for each in ("runAsUser", "runAsGroup", "fsGroup")} == {int(user)}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["automountServiceAccountToken"] is False
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert mounts.keys() == {each["name"] for each in pod["volumes"]}
        assert {"/tmp", "/var/lib/gatebell"} <= set(mounts.values())  # noqa: S108 - a mount


def test_a_pod_stops_within_its_grace_period() -> None:
    for name, pod in pods():
        if "migrate" in name:
            continue
        delay = int(settings_of(pod)["SHUTDOWN_DELAY_SECONDS"])
        patience = delay + Settings.graceful_timeout_seconds
        assert pod["terminationGracePeriodSeconds"] > patience + 5, name


def test_selectors_claims_and_backends_refer_to_existing_objects() -> None:
    deployments = named("Deployment")
    web = deployments["gatebell-web"]["spec"]["template"]
    for each in (*deployments.values(), *named("PodDisruptionBudget").values()):
        assert each["spec"]["selector"]["matchLabels"]
    for each in deployments.values():
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert each["spec"]["selector"]["matchLabels"] == labels
    (budget,) = named("PodDisruptionBudget").values()
    (service,) = named("Service").values()
    for selector in (budget["spec"]["selector"]["matchLabels"], service["spec"]["selector"]):
        assert selector == web["metadata"]["labels"]
    assert budget["spec"]["minAvailable"] < deployments["gatebell-web"]["spec"]["replicas"]
    (container,) = web["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"http": Settings.port}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    (ingress,) = named("Ingress").values()
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    for _, pod in pods():
        for volume in pod["volumes"]:
            claim = volume.get("persistentVolumeClaim")
            assert claim is None or claim["claimName"] in named("PersistentVolumeClaim")


def test_liveness_does_not_depend_on_the_database() -> None:
    (container,) = named("Deployment")["gatebell-web"]["spec"]["template"]["spec"]["containers"]
    probed = {each: container[each]["httpGet"]["path"] for each in container if "Probe" in each}
    assert probed == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


def test_all_pods_run_existing_programs_of_one_image() -> None:
    images = {pod["containers"][0]["image"] for _, pod in pods()}
    assert len(images) == 1
    commands = [pod["containers"][0].get("command") for _, pod in pods()]
    modules = {command[-1] for command in commands if command}
    assert modules == {"web.server.serve_worker", "web.server.migrate"}
    for module in modules:
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
