"""The web process: gunicorn -c config/gunicorn.py config.wsgi"""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.celery import app as celery_app
from config.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
refuse_unsafe_start()
# What the first request would load is loaded before the workers fork: it is shared, and nobody waits for it.
_ = get_resolver().url_patterns, celery_app.amqp.queues
celery_app.finalize()
