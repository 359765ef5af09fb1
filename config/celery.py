"""Celery app: the schedule of periodic tasks, and settings that keep Redis optional.

Tasks carry wake-ups, never emails: a lost or repeated task changes nothing (docs/decisions/0010).
"""

import os
import sys

from celery import Celery

from config import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("postrider", include=["config.worker"])
app.config_from_object(
    {
        "broker_url": env.text("REDIS_URL"),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A publisher must not hang when Redis hangs; a worker's blocking read (polling_interval) ends before that.
        "broker_transport_options": {
            "socket_connect_timeout": 1,
            "socket_timeout": 5,
            "polling_interval": 4,
            "max_retries": 0,
        },
        "task_publish_retry": False,
        "task_ignore_result": True,
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_send_task_events": False,
        "worker_enable_remote_control": False,
        # Celery would close the database connection after every task; config.worker closes only broken ones.
        "CELERY_DB_REUSE_MAX": sys.maxsize,
        "timezone": "UTC",
        "beat_schedule": {
            # For schedules, retries and back-off, which are rows with a due time (docs/decisions/0010).
            "send-emails": {"task": "emails.tasks.drain", "schedule": 2.0, "options": {"expires": 2}},
            "post-webhooks": {"task": "webhooks.tasks.drain", "schedule": 2.0, "options": {"expires": 2}},
            # Hourly, since beat forgets the last run of a daily task at a restart (docs/decisions/0044).
            "expire-emails": {"task": "emails.tasks.expire", "schedule": 3600.0, "options": {"expires": 3600}},
            "expire-events": {"task": "events.tasks.expire", "schedule": 3600.0, "options": {"expires": 3600}},
            "expire-webhooks": {"task": "webhooks.tasks.expire", "schedule": 3600.0, "options": {"expires": 3600}},
            "expire-inbox": {"task": "inbox.tasks.expire", "schedule": 3600.0, "options": {"expires": 3600}},
            "tally": {"task": "analytics.tasks.fold", "schedule": 10.0, "options": {"expires": 10}},
            "reports": {"task": "inbound.tasks.process", "schedule": 15.0, "options": {"expires": 15}},
            "expire-system-mail": {
                "task": "system_mail.tasks.expire",
                "schedule": 3600.0,
                "options": {"expires": 3600},
            },
            "reputation": {"task": "reputation.tasks.judge", "schedule": 60.0, "options": {"expires": 60}},
            "expire-accounts": {"task": "workspaces.tasks.expire", "schedule": 3600.0, "options": {"expires": 3600}},
            "erase-workspaces": {
                "task": "provisioning.tasks.erase",
                "schedule": 3600.0,
                "options": {"expires": 3600},
            },
            "old reports": {"task": "inbound.tasks.purge", "schedule": 3600.0, "options": {"expires": 3600}},
        },
    }
)
app.autodiscover_tasks()
