"""A field that is added to a resource needs few files (docs/decisions/0290): the recipe "Add a field" is followed."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.deploy.debian import copy_source

pytestmark = pytest.mark.full

# Files that need a hand, outside of documentation and tests.
MOST_FILES = 8
CATALOGUES = ("locale/de/LC_MESSAGES/django.po", "locale/de/LC_MESSAGES/django.mo")
MIGRATION = """\
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("{app}", "{last}")]

    operations = [
        migrations.AddField(
            model_name="{model}",
            name="{name}",
            field=models.CharField(blank=True, db_default="", default="", help_text="{text}", max_length=40),
        ),
    ]
"""


@dataclass(frozen=True)
class NewField:
    """A field to add.

    edits: by file, pairs of a text of the file and the text that is inserted before it.
    others: files that change according to what the field does.
    """

    app: str
    model: str
    name: str
    wire_name: str
    text: str
    last_migration: str
    edits: dict[str, list[tuple[str, str]]]
    others: tuple[str, ...] = field(default=CATALOGUES)

    @property
    def migration(self) -> str:
        return f"{self.app}/migrations/9999_{self.name}.py"

    @property
    def files(self) -> set[str]:
        return {*self.edits, *self.others, self.migration}

    @property
    def column(self) -> str:
        options = f'max_length=40, blank=True, default="", db_default="", help_text="{self.text}"'
        return f"    {self.name} = models.CharField({options})\n"


def stream_field() -> NewField:
    name, text = "list_help", "The page that explains the list to recipients."
    return NewField(
        app="streams",
        model="stream",
        name=name,
        wire_name="listHelp",
        text=text,
        last_migration="0008_approval",
        edits={
            "streams/models.py": [("    archived_at = models", "")],
            "streams/serializers.py": [('"transportRoute",', '"listHelp", ')],
            "console/dashboard/pages/streams/forms.py": [
                ('    "transport_route": "transportRoute",', '    "list_help": "listHelp",\n'),
                ("    unsubscribe = _choice(", '    list_help = forms.CharField(label="Help", required=False)\n'),
            ],
            "console/dashboard/pages/streams/section.py": [
                ('        (_("Track opens")', '        ("Help", stream.list_help),\n')
            ],
        },
        # Where emails get it, such as the header List-Help.
        others=("emails/sending/outgoing_messages.py", *CATALOGUES),
    )


def webhook_field() -> NewField:
    name, text = "label", "What the endpoint is for."
    return NewField(
        app="webhooks",
        model="webhook",
        name=name,
        wire_name="label",
        text=text,
        last_migration="0009_headers",
        edits={
            "webhooks/models.py": [("    active = models", "")],
            "webhooks/serializers.py": [('"headers")\n', '"label", ')],
            "webhooks/services.py": [
                ("    headers: Mapping[str, str] | None = None,\n)", '    label: str = "",\n'),
                ("    webhook.sealed_headers = seal", "    webhook.label = label\n"),
            ],
            "console/dashboard/pages/webhooks.py": [
                ('"headers": "headers"}', '"label": "label", '),
                ("    events = forms.Multiple", '    label = forms.CharField(label="Label", required=False)\n'),
                ('"streams", "format")}', '"label", '),
            ],
            "console/dashboard/templates/dashboard/webhooks/detail.html": [("</h2>", " {{ webhook.label }}")],
        },
    )


PYTHON = "clients/python/src/postrider_client"
# What follows from the declaration, by generated file.
DERIVED = {
    f"{PYTHON}/answers.py": ['    {name}: str\n    """{text}"""'],
    f"{PYTHON}/{{app}}.py": ["{name}: Optional[str] = None", "{name}: {text}"],
    f"{PYTHON}/aio/{{app}}.py": ["{name}: Optional[str] = None", "{name}={name}"],
    f"{PYTHON}/cli/inputs.py": ['"{wire}",'],
    "clients/javascript/src/types.ts": [
        "  /** {text} */\n  {wire}: string;",
        "  /** {text} */\n  {wire}?: string;",
    ],
}
CHECK = """
import sys, django; django.setup()
from {app}.serializers import {input}
given = {input}(data={{**{body}, "{wire}": "x" * int(sys.argv[1])}})
print(given.is_valid(), dict(given.errors), given.validated_data.get("{name}"))
"""
INPUTS = {
    "streams": ("StreamInput", {"id": "news", "name": "News"}),
    "webhooks": ("WebhookInput", {"url": "https://hooks.example.com/", "events": ["sent"]}),
}


@pytest.fixture
def checkout(tmp_path) -> Path:
    return copy_source(tmp_path / "checkout")


@pytest.mark.parametrize("added", [stream_field(), webhook_field()], ids=lambda added: added.app)
def test_a_new_field_needs_few_files_and_reaches_all_interfaces(added, checkout):
    assert len(added.files) <= MOST_FILES, added.files
    add(added, checkout)
    assert "No changes detected" in run(checkout, "manage.py", "makemigrations", "--check", "--dry-run", added.app)
    run(checkout, "bin/openapi.py")
    run(checkout, "bin/clients.py")
    document = (checkout / "docs/openapi.json").read_text()
    schemas = json.loads(document)["components"]["schemas"]
    kind = added.model.capitalize()
    for schema in (kind, f"{kind}Input", f"{kind}Changes", f"Configured{kind}Input"):
        assert schemas[schema]["properties"][added.wire_name]["description"] == added.text, schema
    names = {"app": added.app, "name": added.name, "wire": added.wire_name, "text": added.text}
    for path, texts in DERIVED.items():
        content = (checkout / path.format(**names)).read_text()
        assert [text for text in texts if text.format(**names) not in content] == [], path
    serializer, body = INPUTS[added.app]
    script = CHECK.format(**names, input=serializer, body=body)
    assert run(checkout, "-c", script, "40").startswith(f"True {{}} {'x' * 40}")
    assert run(checkout, "-c", script, "41").startswith("False")


def add(added: NewField, checkout: Path) -> None:
    for path, edits in added.edits.items():
        file = checkout / path
        text = file.read_text()
        for anchor, before in edits:
            assert anchor in text, (path, anchor)
            text = text.replace(anchor, (before or added.column) + anchor)
        file.write_text(text)
    (checkout / added.migration).write_text(
        MIGRATION.format(app=added.app, last=added.last_migration, model=added.model, name=added.name, text=added.text)
    )


def run(checkout: Path, *arguments: str) -> str:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": str(checkout)}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
