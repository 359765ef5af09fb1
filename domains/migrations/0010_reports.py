"""Aggregate reports about domains that other organizations send, with their rows."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [
        ("domains", "0009_zone_and_shared_records"),
    ]

    operations = [
        migrations.AddField(
            model_name="receivingdomain",
            name="tls_reporting",
            field=models.TextField(editable=False, null=True),
        ),
        migrations.CreateModel(
            name="DomainReport",
            fields=[
                ("id", core.lib.model_fields.IdField("rpt_", editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[("dmarc", "Dmarc"), ("tls", "Tls")], max_length=8)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("read", "Read"),
                            ("repeated", "Repeated"),
                            ("conflict", "Conflict"),
                            ("foreign", "Foreign"),
                            ("unreadable", "Unreadable"),
                            ("refused", "Refused"),
                        ],
                        db_default="waiting",
                        max_length=16,
                    ),
                ),
                (
                    "received_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("due_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ("attempts", models.PositiveSmallIntegerField(db_default=0, editable=False)),
                ("read_at", models.DateTimeField(editable=False, null=True)),
                ("source", models.BinaryField(null=True)),
                ("size", models.PositiveIntegerField(help_text="bytes")),
                ("sender", models.CharField(blank=True, max_length=320)),
                ("network", models.CharField(blank=True, max_length=43)),
                ("reporter", models.CharField(blank=True, default="", max_length=255)),
                ("reporter_domain", models.CharField(blank=True, default="", max_length=253)),
                ("organization", models.CharField(blank=True, db_default="", default="", max_length=253)),
                ("report_id", models.CharField(blank=True, default="", max_length=1024)),
                ("begin_at", models.DateTimeField(null=True)),
                ("end_at", models.DateTimeField(null=True)),
                ("policy", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("digest", models.BinaryField(default=b"", max_length=32)),
                ("error", models.CharField(blank=True, default="", max_length=255)),
                (
                    "domain",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="reports",
                        to="domains.domain",
                    ),
                ),
            ],
            options={
                "ordering": ["-received_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="DmarcRow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("source_ip", models.GenericIPAddressField(null=True)),
                ("count", models.PositiveBigIntegerField()),
                ("disposition", models.CharField(blank=True, max_length=16)),
                ("dkim", models.CharField(blank=True, max_length=16)),
                ("spf", models.CharField(blank=True, max_length=16)),
                ("header_from", models.CharField(blank=True, max_length=1024)),
                ("envelope_from", models.CharField(blank=True, max_length=1024)),
                ("envelope_to", models.CharField(blank=True, max_length=1024)),
                ("dkim_results", models.JSONField(default=list)),
                ("spf_results", models.JSONField(default=list)),
                ("reasons", models.JSONField(default=list)),
                ("whose", models.CharField(blank=True, db_default="", default="", max_length=16)),
                (
                    "domain",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="domains.domain",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dmarc_rows",
                        to="domains.domainreport",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TlsRow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("policy_type", models.CharField(max_length=32)),
                ("policy_domain", models.CharField(max_length=1024)),
                ("mx_hosts", models.JSONField(default=list)),
                ("result_type", models.CharField(blank=True, max_length=64)),
                ("successful", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("sending_ip", models.GenericIPAddressField(null=True)),
                ("receiving_ip", models.GenericIPAddressField(null=True)),
                ("receiving_host", models.CharField(blank=True, max_length=1024)),
                ("reason_code", models.CharField(blank=True, max_length=1024)),
                (
                    "domain",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="domains.domain",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tls_rows", to="domains.domainreport"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DmarcDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("organization", models.CharField(max_length=253)),
                ("whose", models.CharField(blank=True, max_length=16)),
                ("messages", models.PositiveBigIntegerField()),
                ("aligned", models.PositiveBigIntegerField()),
                (
                    "domain",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dmarc_days",
                        to="domains.domain",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("domain", "day", "organization", "whose"), name="one_sum_a_dmarc_day"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="domainreport",
            index=models.Index(condition=models.Q(("read_at", None)), fields=["due_at"], name="domain_report_due"),
        ),
        migrations.AddIndex(
            model_name="domainreport",
            index=models.Index(fields=["domain", "received_at"], name="domain_report_arrival"),
        ),
        migrations.AddIndex(
            model_name="domainreport",
            index=models.Index(fields=["domain", "kind", "begin_at"], name="domain_report_range"),
        ),
        migrations.AddIndex(
            model_name="domainreport",
            index=models.Index(fields=["received_at"], name="domain_report_received"),
        ),
        migrations.AddIndex(
            model_name="domainreport",
            index=models.Index(
                condition=models.Q(("source__isnull", False)), fields=["received_at"], name="domain_report_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="domainreport",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "read")),
                fields=("domain", "kind", "reporter", "report_id"),
                name="one_counted_report_an_id",
            ),
        ),
        migrations.AddIndex(
            model_name="dmarcrow",
            index=models.Index(fields=["domain", "day"], name="dmarc_row_day"),
        ),
        migrations.AddIndex(
            model_name="tlsrow",
            index=models.Index(fields=["domain", "day"], name="tls_row_day"),
        ),
    ]
