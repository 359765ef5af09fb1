from django.db import migrations

# Of mail that left before this version only the complaints would be counted, and not the mail itself.
TOMORROW = "UPDATE workspaces_workspace SET judged_from = now() + interval '1 day'"


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0004_reputation")]

    operations = [migrations.RunSQL(TOMORROW, migrations.RunSQL.noop)]
