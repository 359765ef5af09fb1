"""No table any more, as of version 1.1.0."""

from django.db import migrations


class Migration(migrations.Migration):
    replaces = [("analytics", name) for name in """
        0001_initial 0002_days 0003_fill_days 0004_statistics 0005_plain_model_names 0006_slices 0007_counters
    """.split()]

    initial = True

    dependencies = []

    operations = []
