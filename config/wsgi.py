"""WSGI application: gunicorn -c config/gunicorn.py config.wsgi"""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.celery import app as celery_app
from config.checks import refuse_unsafe_start
from config.postgres.preparation import prepare_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
refuse_unsafe_start()
# Loaded before the workers fork: the memory is shared, and the first request does not wait.
_ = get_resolver().url_patterns, celery_app.amqp.queues
celery_app.finalize()
prepare_connections()
