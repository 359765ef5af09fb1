"""The log of events belongs to the app events; its table stays."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("emails", "0022_test_batches")]

    operations = [migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Event")])]
