"""What the processes share about named transports: drained or not, and the messages of the day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0027_handed_to")]

    operations = [
        migrations.CreateModel(
            name="TransportUse",
            fields=[
                ("name", models.CharField(max_length=30, primary_key=True, serialize=False)),
                ("drained_at", models.DateTimeField(null=True)),
                ("used_on", models.DateField(null=True)),
                ("used", models.PositiveIntegerField(db_default=0, default=0)),
                ("paused_notice_at", models.DateTimeField(null=True)),
                ("resumed_notice_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "emails_transport"},
        ),
    ]
