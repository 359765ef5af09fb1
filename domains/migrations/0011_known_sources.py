"""Labels of sources of a domain's mail, and the notices about its reports that were sent."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("domains", "0010_reports"),
    ]

    operations = [
        migrations.CreateModel(
            name="DomainNotice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=32)),
                ("sent_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                (
                    "domain",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="domains.domain",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("domain", "kind"), name="one_notice_a_kind")],
            },
        ),
        migrations.CreateModel(
            name="KnownSource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ip", models.GenericIPAddressField(null=True)),
                ("name", models.CharField(blank=True, default="", max_length=253)),
                ("label", models.CharField(max_length=100)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "domain",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="known_sources",
                        to="domains.domain",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ip__isnull", False)), fields=("domain", "ip"), name="one_label_an_address"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("ip", None)), fields=("domain", "name"), name="one_label_a_sender"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("ip", None), ("name", ""), _connector="XOR"), name="address_or_sender"
                    ),
                ],
            },
        ),
    ]
