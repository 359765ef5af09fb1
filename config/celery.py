"""Celery app: the schedule of periodic tasks, and settings that keep Redis optional.

Tasks carry wake-ups, never emails: a lost or repeated task changes nothing (docs/decisions/0010).
"""

import os
import sys

from celery import Celery

from config import env
from core.lib.redis_client import broker_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# The task, and the seconds between two runs; one that no worker has begun by the next run expires.
SCHEDULE = {
    # For schedules, retries and back-off, which are rows with a due time (docs/decisions/0010).
    "send-emails": ("emails.tasks.drain", 2),
    "post-webhooks": ("webhooks.tasks.drain", 2),
    # Hourly, since beat forgets the last run of a daily task at a restart (docs/decisions/0044).
    # A sensitive email is empty within a minute of its last outcome (docs/decisions/0352).
    "remove-contents": ("emails.tasks.remove_contents", 20),
    "expire-emails": ("emails.tasks.expire", 3600),
    "expire-events": ("events.tasks.expire", 3600),
    "expire-webhooks": ("webhooks.tasks.expire", 3600),
    "expire-inbox": ("inbox.tasks.expire", 3600),
    "expire-received": ("receiving.tasks.expire", 3600),
    "forget-received": ("receiving.tasks.forget", 60),
    "tally": ("analytics.tasks.fold", 10),
    "reports": ("inbound.tasks.process", 15),
    "expire-system-mail": ("system_mail.tasks.expire", 3600),
    "reputation": ("reputation.tasks.judge", 60),
    "alerts": ("alerts.tasks.check", 60),
    "domain-reports": ("reports.tasks.check", 3600),
    "approvals": ("approvals.tasks.check", 60),
    "expire-requests": ("request_log.tasks.expire", 600),
    "expire-accounts": ("workspaces.tasks.expire", 3600),
    "erase-people": ("privacy.tasks.erase", 15),
    "export-people": ("privacy.tasks.export", 15),
    "erase-workspaces": ("provisioning.tasks.erase", 3600),
    "read-reports": ("domains.tasks.read_reports", 15),
    "expire-tracking-hosts": ("domains.tasks.expire", 3600),
    "old reports": ("inbound.tasks.purge", 3600),
    # Looks up the addresses whose last lookup is an hour ago, also after a restart of beat.
    "watch-sources": ("emails.tasks.watch", 300),
    "refresh-tls-policies": ("emails.tasks.refresh_policies", 600),
    # Only of an installation that uses it.
    **({"canary": ("system_mail.tasks.check_canaries", 15)} if env.is_set("CANARY_MINUTES") else {}),
    **({"tls-reports": ("system_mail.tasks.send_tls_reports", 600)} if env.is_set("TLSRPT_DOMAIN") else {}),
}

broker_url, broker_options = broker_settings(env.text("REDIS_URL"))
app = Celery("postrider", include=["config.worker"])
app.config_from_object(
    {
        "broker_url": broker_url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A publisher must not hang when Redis hangs; a worker's blocking read (polling_interval) ends before that.
        "broker_transport_options": {
            "socket_connect_timeout": 1,
            "socket_timeout": 5,
            "polling_interval": 4,
            "max_retries": 0,
            **broker_options,
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
            name: {"task": task, "schedule": float(seconds), "options": {"expires": seconds}}
            for name, (task, seconds) in SCHEDULE.items()
        },
    }
)
app.autodiscover_tasks()
