"""The models of the counters belong to the app counters; their tables stay."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analytics", "0006_slices")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("HourlyCounter"),
                migrations.DeleteModel("DailyCounter"),
                migrations.DeleteModel("CounterDelta"),
                migrations.DeleteModel("SliceCounter"),
            ]
        )
    ]
