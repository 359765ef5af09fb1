"""Add whether webhook bodies have the score of the spam filter."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("receiving", "0006_shares_of_networks")]

    operations = [
        migrations.AddField(
            "inboundroute", "spam_report", models.BooleanField(db_default=True, default=True, editable=False)
        ),
    ]
