"""Fill in finished_at, and count the recipients accepted before recipient counters existed."""

from django.db import migrations

FILL = """
UPDATE emails_recipient r SET finished_at = coalesce(r.sent_at, r.replied_at, now())
 WHERE finished_at IS NULL AND NOT EXISTS (SELECT FROM emails_pending p WHERE p.recipient_id = r.id);
UPDATE emails_email e SET finished_at = d.finished_at
  FROM (SELECT email_id, max(finished_at) AS finished_at FROM emails_recipient
         GROUP BY email_id HAVING bool_and(finished_at IS NOT NULL)) d
 WHERE e.id = d.email_id AND e.finished_at IS NULL;
UPDATE emails_pending p SET since = lead.due_at
  FROM emails_recipient r, emails_recipient first, emails_pending lead
 WHERE p.stage = 3 AND p.due_at > lead.due_at AND r.id = p.recipient_id
   AND first.email_id = r.email_id AND first.position = 0 AND lead.recipient_id = first.id;
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
SELECT e.workspace_id, '1970-01-01 00:00:00+00', 'recipients.' || key, count(*)
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id LEFT JOIN emails_pending p ON p.recipient_id = r.id
 CROSS JOIN LATERAL (VALUES ('accepted', true), ('cancelled', r.state = 'cancelled'), ('delayed', p.stage IN (0, 3)))
       AS counted (key, counts)
 WHERE counts GROUP BY 1, 3;
"""


class Migration(migrations.Migration):
    dependencies = [("emails", "0007_finished"), ("analytics", "0002_days")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
