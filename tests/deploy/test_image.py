"""The image is built, and the services of compose.yaml run from it: migrate, start, send, kill, restart."""

import json
import os
import smtplib
import ssl
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import requests
import trustme

from tests.audit.ledger import Ledger
from tests.audit.sink import mail_sink
from tests.deploy.debian import pip_settings, run
from tests.deploy.image import Compose, built_image
from tests.stack.stack import REPOSITORY, drop_database, free_port, wait_for
from tools.embedded.servers import redis

pytestmark = pytest.mark.long

WORKSPACE = ["--name", "Acme", "--email", "you@example.com", "--password", "correct horse", "--plan", "pro"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    with built_image(tmp_path_factory.mktemp("image")) as image:
        yield image


@pytest.fixture
def database():
    server, name = os.environ["DATABASE_URL"].rpartition("/")[0], f"image_{uuid4().hex[:12]}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"
    drop_database(server, name)


@pytest.fixture
def ledger():
    return Ledger()


def mount_certificate(directory):
    """Put a certificate where compose mounts its directory, readable for the user of the image."""
    directory.mkdir()
    certificate = trustme.CA().issue_cert("mail.example.com")
    (directory / "fullchain.pem").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(directory / "privkey.pem")
    for path in directory.iterdir():
        os.chown(path, 10001, 10001)


@pytest.fixture
def compose(image, database, ledger, tmp_path):
    """The services with a file of deploy/make-env, on free ports, with a relay that keeps all messages."""
    mount_certificate(image.root / "tls")
    port, server, environment = str(free_port()), redis.start_throw_away(), tmp_path / ".env"
    with mail_sink(ledger) as relay:
        run(
            REPOSITORY / "deploy" / "make-env", environment, "mail.example.com", f"DATABASE_URL={database}",
            f"REDIS_URL={server.url}", f"PORT={port}", "DELIVERY_TRANSPORT=smtp", "WEB_CONCURRENCY=1",
            f"SMTP_URL=smtp://127.0.0.1:{relay}?tls=none", "WORKER_CONCURRENCY=1", "LEASE_SECONDS=4",
            "SENDING_DOMAIN_POLICY=registered", "RATE_LIMIT=off",
        )  # fmt: skip
        compose = Compose(image, environment, tmp_path, changes=ports())
        try:
            yield compose
        finally:
            for name in list(compose.running):
                compose.kill(name)
            server.stop()


def ports() -> dict[str, str]:
    """Return free ports in the place of those that compose maps."""
    return {name: str(free_port()) for name in ("INBOUND_PORT", "SUBMISSION_PORTS", "SUBMISSION_TLS_PORTS")}


class Caller:
    """Calls the API of the web service as a proxy does: with its host name, over a local connection."""

    def __init__(self, compose: Compose) -> None:
        self.url = f"http://127.0.0.1:{compose.environment('web')['PORT']}/v1"
        workspace = compose.manage("create_workspace", *WORKSPACE)["workspaceId"]
        options = ["--name", "server", "--scope", "full_access"]
        self.key = compose.manage("create_api_key", "--workspace", workspace, *options)["key"]
        self.headers = {"Authorization": f"Bearer {self.key}", "Host": "mail.example.com", "X-Forwarded-Proto": "https"}

    def post(self, path: str, body: Any) -> Any:
        response = requests.post(self.url + path, json=body, headers=self.headers, timeout=30)
        assert response.ok, response.text
        return response.json()

    def send(self, number: int) -> str:
        recipient = f"r{number}@example.org"
        body = {"from": "hello@acme.example", "to": recipient, "subject": "Hello", "html": "<p>Hello</p>"}
        self.post("/emails/send", body)
        return recipient


def submit(compose: Compose, key: str) -> str:
    """Send over SMTP with the certificate that compose mounts."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    port = int(compose.environment("submission")["SUBMISSION_TLS_PORTS"])
    with smtplib.SMTP_SSL("127.0.0.1", port, context=context) as session:
        session.login("apikey", key)
        session.sendmail("hello@acme.example", ["smtp@example.org"], "From: hello@acme.example\r\n\r\nHello\r\n")
    return "smtp@example.org"


def test_no_layer_contains_a_secret_or_a_setting_of_pip(image):
    for name in ("app/.env", "app/deploy/.env", "app/.git"):
        assert not (image.root / name).exists()
    found = [
        value
        for value in pip_settings().values()
        if len(value) > 5 and value in json.dumps(image.config) + image.history
    ]
    assert found == []
    assert not (image.root / "etc/pip.conf").exists()


def test_the_image_names_itself_and_runs_as_a_fixed_user(image):
    assert image.config["User"] == "10001:10001"
    assert image.config["StopSignal"] == "SIGTERM"
    assert image.config["Labels"]["org.opencontainers.image.title"] == "Postrider"
    assert image.config["Cmd"] == ["web"]


def test_the_image_contains_the_collected_static_files(image):
    assert (image.root / "app/var/static/staticfiles.json").exists()
    assert not (image.root / "app/console/dashboard/assets").exists()


def test_an_unknown_process_is_refused_with_the_names_of_the_processes(image, tmp_path):
    log = tmp_path / "log"
    assert image.start("wrker", environment={}, log=log).wait(timeout=30) == 64
    assert "web|worker|beat|inbound" in log.read_text()


def test_the_services_migrate_start_send_and_survive_kills(compose, ledger):
    assert next(iter(compose.services)) == "migrate"
    compose.finish("migrate")
    processes = [name for name in compose.services if name != "migrate"]
    for name in processes:
        compose.start(name)
    wait_for(compose.is_healthy, seconds=60, what="web is healthy")
    api = Caller(compose)
    api.post("/domains", {"name": "acme.example"})
    recipients = {api.send(number) for number in range(50)}
    compose.kill("worker")
    recipients |= {api.send(number) for number in range(50, 100)}
    compose.kill("web")
    compose.start("web")
    compose.start("worker")
    wait_for(compose.is_healthy, seconds=60, what="web is healthy again")
    recipients |= {api.send(100), submit(compose, api.key)}
    wait_for(lambda: {message.recipient for message in ledger.messages} == recipients, seconds=60, what="all mail")
    assert all(process.poll() is None for process in compose.running.values())
    assert {name: compose.stop(name) for name in processes} == dict.fromkeys(processes, 0)
