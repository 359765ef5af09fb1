"""The files in deploy/ pass the checkers of their formats: hadolint, compose, systemd, Kubernetes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.deploy.debian import copy_source, run
from tests.stack.stack import REPOSITORY
from tests.standards import tools

pytestmark = pytest.mark.full

DEPLOY = REPOSITORY / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
PROGRAMS = Path(sys.executable).parent
SERVICES = [f"postrider-{name}.service" for name in ("web", "worker@1", "beat", "inbound", "submission")]
JOBS = ("backup", "doctor", "tracking-hosts")
MOST_EXPOSURE = 3.0
RESTRICTIONS = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def test_hadolint_accepts_the_dockerfile():
    assert run(PROGRAMS / "hadolint", DEPLOY / "Dockerfile") == ""


def test_the_compose_file_follows_its_schema():
    run(PROGRAMS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_compose_runs_every_process_of_the_image_with_limits():
    names = re.findall(r"[a-z]+", re.search(r"Usage: entrypoint (\S+)", (DEPLOY / "entrypoint").read_text())[1])
    processes = [service for service in COMPOSE.values() if "env_file" in service]
    commands = [service["command"] for service in processes]
    assert sorted(commands) == sorted([name] for name in names if name not in {"doctor", "manage"})
    # The database has the rest of the machine.
    assert {name for name, service in COMPOSE.items() if "mem_limit" in service} == {*COMPOSE} - {"postgres"}
    assert all("ulimits" in service for service in processes)
    # The certificate that is copied from Caddy.
    assert "tls:/tls" in COMPOSE["certificate"]["volumes"]
    assert [COMPOSE[name]["volumes"] for name in ("inbound", "submission")] == [["${TLS_FILES:-tls}:/tls:ro"]] * 2


def test_workers_reach_the_inbound_server_in_compose():
    worker = COMPOSE["worker"]
    host, _, port = worker["environment"]["RECEIVING_SERVER"].partition(":")
    assert COMPOSE[host]["command"] == ["inbound"]
    assert COMPOSE[host]["environment"]["INBOUND_PORT"] == port
    assert {*COMPOSE[host]["networks"]} & {*worker["networks"]}
    # The rest of the environment stays.
    assert COMPOSE["migrate"]["environment"].items() <= worker["environment"].items()


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """A root file system with the units and the programs that they start."""
    root = tmp_path_factory.mktemp("units")
    shutil.copytree("/usr/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True)
    shutil.copytree(DEPLOY / "systemd", root / "etc/systemd/system")
    for name in (
        ".venv/bin/python",
        ".venv/bin/gunicorn",
        "deploy/backup",
        "deploy/postrider-admin",
        "deploy/tracking-hosts",
    ):
        program = root / "opt/postrider" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(mode=0o755)
    (root / "etc/postrider").mkdir()
    (root / "etc/postrider/env").touch()
    return root


def test_systemd_accepts_the_units(units):
    timers = [f"postrider-{job}.{kind}" for job in JOBS for kind in ("service", "timer")]
    installed = [*SERVICES, *timers, "postrider-web.socket", "postrider.target"]
    shown = run("systemd-analyze", "verify", f"--root={units}", "--man=no", *installed)
    assert [line for line in shown.splitlines() if "postrider" in line] == []


def test_a_service_has_limits_and_is_hardly_exposed(units):
    assert "\nLimitNOFILE=65536\n" in (DEPLOY / "systemd/postrider-.service.d/process.conf").read_text()
    for service in SERVICES:
        unit = (DEPLOY / "systemd" / service.replace("@1", "@")).read_text()
        assert re.search(r"^MemoryMax=\d+[%M]$", unit, re.MULTILINE), service
        assert exposure(units, service) <= MOST_EXPOSURE, service


def exposure(units, service):
    shown = run("systemd-analyze", "security", "--offline=true", f"--root={units}", "--no-pager", service)
    return float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", shown)[1])


def test_a_job_replaces_the_settings_of_processes(units):
    """systemd-analyze refuses a job that would be started again, as the processes are."""
    for job in JOBS:
        directory = units / f"etc/systemd/system/postrider-{job}.service.d"
        assert (directory / "process.conf").read_text().count("\nType=oneshot\n") == 1, job
        assert (units / f"etc/systemd/system/postrider-{job}.timer").exists(), job


def test_a_job_has_the_sandbox_of_processes(units):
    assert {job: level for job in JOBS if (level := exposure(units, f"postrider-{job}.service")) > MOST_EXPOSURE} == {}
    # At the end of a unit, systemd removes the shared memory of its account.
    assert "\nRemoveIPC=no\n" in (DEPLOY / "systemd/postrider-backup.service.d/process.conf").read_text()


def test_the_certificate_of_caddy_is_copied_once_it_exists_and_again_when_it_changes(tmp_path):
    copy = [DEPLOY / "caddy-certificate", tmp_path / "caddy", "mail.example.com", tmp_path / "tls", str(os.getuid())]
    assert subprocess.run(copy, check=False, capture_output=True).returncode == os.EX_TEMPFAIL
    source = tmp_path / "caddy/certificates/authority/mail.example.com"
    source.mkdir(parents=True)
    for number in ("first", "renewed"):
        (source / "mail.example.com.crt").write_text(f"{number} certificate")
        (source / "mail.example.com.key").write_text(f"{number} key")
        run(*copy)
        run(*copy)
        assert (tmp_path / "tls/fullchain.pem").read_text() == f"{number} certificate"
        assert (tmp_path / "tls/privkey.pem").read_text() == f"{number} key"
        assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "tls").iterdir()} == {
            "fullchain.pem": 0o400,
            "privkey.pem": 0o400,
        }


def test_nftables_accepts_the_firewall():
    nft = tools.program("nft", package="nftables")
    text = (DEPLOY / "nftables.conf").read_text()
    # The account exists on a server only.
    rules = text.replace("skuid postrider", "skuid 0")
    run("unshare", "--net", nft, "--check", "--file", "-", input=rules)
    ports = set(map(int, re.findall(r"\d+", " ".join(re.findall(r"tcp dport (\{.*?\}|\d+) accept", text)))))
    assert {25, 80, 443, 465, 587} <= ports


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """The rendered manifests, with the files of make-files."""
    source = copy_source(tmp_path_factory.mktemp("kubernetes"))
    directory = source / "deploy" / "kubernetes"
    database, redis = (
        "DATABASE_URL=postgres://postrider:pw@db.example.com/postrider",
        "REDIS_URL=redis://redis.example.com/0",
    )
    run(directory / "make-files", "mail.example.com", database, redis, "TRUSTED_PROXIES=10.0.0.0/8")
    kubectl = tools.program("kubectl", package="kubernetes-client")
    if "Kustomize Version: v5" not in run(kubectl, "version", "--client"):
        pytest.skip("this kubectl is older than 1.27 and cannot render the manifests")
    rendered = directory / "rendered.yaml"
    rendered.write_text(run(kubectl, "kustomize", directory))
    return rendered


@pytest.fixture(scope="module")
def production(manifests):
    """The rendered overlay of an installation, over the same files."""
    rendered = manifests.with_name("production.yaml")
    kubectl = tools.program("kubectl", package="kubernetes-client")
    rendered.write_text(run(kubectl, "kustomize", manifests.parent.parent / "overlays" / "production"))
    return rendered


def test_autoscalers_decide_the_number_of_pods(manifests, production):
    autoscalers = by_kind(production, "HorizontalPodAutoscaler")
    deployments, before = by_kind(production, "Deployment"), by_kind(manifests, "Deployment")
    assert autoscalers.keys() == {"web", "worker", "submission"}
    for name, autoscaler in autoscalers.items():
        assert autoscaler["metadata"]["namespace"] == deployments[name]["metadata"]["namespace"]
        assert autoscaler["spec"]["scaleTargetRef"]["name"] == name
        assert autoscaler["spec"]["minReplicas"] == before[name]["spec"]["replicas"]
        # The target is a share of the request.
        assert deployments[name]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert {name for name, one in deployments.items() if "replicas" not in one["spec"]} == autoscalers.keys()


def test_an_overlay_changes_what_an_installation_has_to(manifests, production):
    host = "mail.example.com"
    web = by_kind(production, "Ingress")["web"]["spec"]
    assert (web["rules"][0]["host"], web["tls"][0]["hosts"]) == (host, [host])
    # Every other resource is that of the base.
    assert {*by_kind(production, "NetworkPolicy")} == {*by_kind(manifests, "NetworkPolicy")}
    images = {
        container["image"]
        for one in by_kind(production, "Deployment").values()
        for container in one["spec"]["template"]["spec"]["containers"]
    }
    assert len(images) == 1


def test_a_secret_for_kubernetes_has_no_quotes(tmp_path):
    directory = copy_source(tmp_path / "source") / "deploy" / "kubernetes"
    url = "postgres://postrider:pw@db.example.com/postrider?sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem"
    run(directory / "make-files", "mail.example.com", f"DATABASE_URL={url}", "REDIS_URL=redis://redis.example.com/0")
    assert (directory / "secrets" / "DATABASE_URL").read_text() == url


def by_kind(manifests, kind):
    documents = yaml.safe_load_all(manifests.read_text())
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


# Helm itself, as a library.
HELM = "helm-python-sdk==0.2.2"
RENDER = """
import json, sys, helm_python
with helm_python.Chart.load(sys.argv[1]) as chart:
    print(json.dumps(chart.render(json.load(sys.stdin), name="postrider", namespace="postrider")))
"""


def helm_chart(manifests, **values):
    """Return the objects of the chart for the files of make-files, by kind and name."""
    directory = manifests.parent
    secrets = {file.name: file.read_text() for file in (directory / "secrets").iterdir()}
    given = json.dumps({"settings": (directory / "settings.env").read_text(), "secrets": secrets, **values})
    done = subprocess.run(
        [sys.executable, "-c", RENDER, directory.parent / "helm"],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tools.python_packages(HELM))},
    )
    assert done.returncode == 0, done.stderr
    return compared(document for text in json.loads(done.stdout).values() for document in yaml.safe_load_all(text))


def compared(documents):
    """Return objects by kind and name, without what shows that an object has changed.

    That is the end of the names of kustomize, and the name of the Job and an annotation of Helm.
    """
    found = {}
    for document in filter(None, documents):
        text = re.sub(r'"postrider-[a-z0-9]{10}"', '"postrider"', json.dumps(document))
        one = json.loads(text.replace('"migrate-1"', '"migrate"'))
        one.get("spec", {}).get("template", {}).get("metadata", {}).pop("annotations", None)
        if one["kind"] == "Secret":
            one["data"] = {name: "".join(value.split()) for name, value in one["data"].items()}
        found[one["kind"], one["metadata"]["name"]] = one
    return found


def test_the_helm_chart_has_the_objects_of_kustomize(manifests, production):
    values = {"autoscaling": {"enabled": True}, "resources": {"web": {"limits": {"memory": "2Gi"}}}}
    for rendered, chart in ((manifests, helm_chart(manifests)), (production, helm_chart(manifests, **values))):
        expected = compared(yaml.safe_load_all(rendered.read_text()))
        # Helm needs it before the first release; the guide applies its file.
        del expected["Namespace", "postrider"]
        assert chart.keys() == expected.keys()
        assert {key for key, one in chart.items() if one != expected[key]} == set()


def test_values_of_the_helm_chart_change_the_objects(manifests):
    values = {"host": "post.shop.example", "tlsSecret": "post-tls", "ingressNamespace": "traefik"}
    image = {"repository": "ghcr.io/shop/postrider", "tag": "2.0.0"}
    chart = helm_chart(manifests, **values, image=image, replicas={"worker": 5})
    text = json.dumps(list(chart.values()))
    assert "mail.example.com" not in json.dumps(chart["Ingress", "web"])
    assert "web-tls" not in text
    assert "ingress-nginx" not in json.dumps(chart["NetworkPolicy", "web"])
    assert "registry.example.com" not in text
    assert chart["Deployment", "worker"]["spec"]["replicas"] == 5
    assert chart["Deployment", "web"]["spec"]["replicas"] == 2
    # The guide names all values.
    guide = (REPOSITORY / "docs" / "install-kubernetes.md").read_text()
    names = yaml.safe_load((DEPLOY / "helm" / "values.yaml").read_text())
    assert [name for name in names if f"`{name}" not in guide] == []


def test_kubernetes_accepts_the_manifests(manifests, production):
    run(
        PROGRAMS / "kubernetes-validate",
        "--strict",
        manifests,
        production,
        DEPLOY / "kubernetes" / "tracking-host.yaml",
    )


def test_the_ingress_of_a_tracking_host_is_that_of_web_with_another_name(manifests):
    file = DEPLOY / "kubernetes" / "tracking-host.yaml"
    documented = yaml.safe_load(file.read_text())
    web = by_kind(manifests, "Ingress")["web"]
    assert documented["metadata"]["namespace"] == web["metadata"]["namespace"]
    assert documented["metadata"]["annotations"].keys() == {"cert-manager.io/cluster-issuer"}
    text = json.dumps(documented["spec"]).replace("links.example.com", "mail.example.com")
    expected = json.dumps(web["spec"]).replace("web-tls", "mail.example.com")
    assert json.loads(text) == json.loads(expected)
    # The pattern of the command in the guide finds all names.
    guide = (REPOSITORY / "docs" / "install-kubernetes.md").read_text()
    pattern = re.search(r'sed "s/(\S+)/\$name/" deploy/kubernetes/tracking-host.yaml', guide)[1]
    assert not re.search(r"links\.example\.com", re.sub(pattern, "links.shop.example", file.read_text()))
    assert max(len(re.findall(pattern, line)) for line in file.read_text().splitlines()) == 1


def test_cert_manager_reaches_its_pods(manifests):
    """default-deny would refuse the requests of the certificate authority."""
    policy = by_kind(manifests, "NetworkPolicy")["acme-solver"]["spec"]
    assert policy["podSelector"]["matchLabels"] == {"acme.cert-manager.io/http01-solver": "true"}
    assert policy["ingress"] == [{"ports": [{"port": 8089}]}]


def test_every_process_of_the_image_has_a_workload_in_kubernetes(manifests):
    processes = {name for name, service in COMPOSE.items() if "env_file" in service}
    assert {*by_kind(manifests, "Deployment"), *by_kind(manifests, "Job")} == processes


def test_every_container_is_restricted_and_reads_secrets_from_files(manifests):
    secret = next(iter(by_kind(manifests, "Secret").values()))
    (config,) = by_kind(manifests, "ConfigMap").values()
    assert all(not config["data"][name] and config["data"][f"{name}_FILE"].endswith(name) for name in secret["data"])
    for workload in (by_kind(manifests, "Deployment") | by_kind(manifests, "Job")).values():
        pod = workload["spec"]["template"]["spec"]
        for container in pod["containers"] + pod.get("initContainers", []):
            assert container["securityContext"] == RESTRICTIONS
            assert container["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
        assert {"name": "secrets", "secret": {"secretName": secret["metadata"]["name"], "defaultMode": 0o440}} in pod[
            "volumes"
        ]


def test_values_reach_kubernetes_without_their_quotes(manifests):
    (config,) = by_kind(manifests, "ConfigMap").values()
    assert config["data"]["SYSTEM_FROM"] == "Postrider <no-reply@mail.example.com>"
    assert config["data"]["RATE_LIMIT"] == "50/s burst 100"


def test_workers_reach_the_inbound_server_in_kubernetes(manifests):
    (config,) = by_kind(manifests, "ConfigMap").values()
    name, _, port = config["data"]["RECEIVING_SERVER"].partition(":")
    (service_port,) = by_kind(manifests, "Service")[name]["spec"]["ports"]
    assert service_port["port"] == int(port)
    (container,) = by_kind(manifests, "Deployment")[name]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["inbound"]
    (container_port,) = container["ports"]
    assert container_port == {"name": service_port["targetPort"], "containerPort": int(config["data"]["INBOUND_PORT"])}
    assert by_kind(manifests, "NetworkPolicy")[name]["spec"]["ingress"] == [
        {"ports": [{"port": container_port["name"]}]}
    ]


def test_workers_reach_the_inbound_server_on_debian(tmp_path):
    source = copy_source(tmp_path / "source")
    run(source / "deploy" / "make-env", tmp_path / "env", "mail.example.com")
    settings = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if line[:1].isupper())
    assert settings["RECEIVING_SERVER"] == f"127.0.0.1:{settings['INBOUND_PORT']}"
    assert settings["INBOUND_HOST"] == "0.0.0.0"
