"""The stream of an email, and its rank in the queue: columns with constant defaults, which rewrite no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0023_events_elsewhere")]

    operations = [
        migrations.AddField(
            model_name="email",
            name="stream",
            field=models.CharField(db_default="main", default="main", max_length=40),
        ),
        migrations.AddField(
            model_name="queueentry",
            name="rank",
            field=models.SmallIntegerField(db_default=1, default=1, help_text="priority of its stream"),
        ),
    ]
