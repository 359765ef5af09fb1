"""Model names HourlyCounter, DailyCounter and CounterDelta; their tables keep their names."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("analytics", "0004_statistics")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Tally", "HourlyCounter"),
                migrations.AlterModelTable("hourlycounter", "analytics_tally"),
                migrations.RenameModel("TallyDay", "DailyCounter"),
                migrations.AlterModelTable("dailycounter", "analytics_tallyday"),
                migrations.RenameModel("TallyDelta", "CounterDelta"),
                migrations.AlterModelTable("counterdelta", "analytics_tallydelta"),
            ]
        )
    ]
