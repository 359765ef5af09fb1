"""The project: settings and their checks, URLs, Celery, worker and web processes, health and metrics."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
