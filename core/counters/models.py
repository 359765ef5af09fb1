"""Counters by hour, day and slice, and the deltas not yet folded into them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from core.lib.model_fields import IdField


class HourlyCounter(models.Model):
    """The count of one key in a workspace, by the UTC hour in which the emails were created."""

    workspace_id = IdField("ws_")
    hour = models.DateTimeField()
    key = models.CharField(max_length=80)
    count = models.BigIntegerField()

    class Meta:
        db_table = "analytics_tally"
        constraints = [models.UniqueConstraint(fields=["workspace_id", "hour", "key"], name="one_tally_an_hour")]

    def __str__(self) -> str:
        return f"{self.key} {self.count}"


class CounterDelta(models.Model):
    """A change not yet folded into the counters; inserted in the transaction of the change that it counts."""

    workspace_id = IdField("ws_")
    hour = models.DateTimeField()
    key = models.CharField(max_length=80)
    change = models.BigIntegerField()
    slices = ArrayField(models.UUIDField(), default=list, db_default=[])

    class Meta:
        db_table = "analytics_tallydelta"
        indexes = [models.Index(fields=["workspace_id", "hour"], name="delta_workspace")]

    def __str__(self) -> str:
        return f"{self.key} {self.change:+}"


class DailyCounter(models.Model):
    """The sum of the hourly counters of one key in a UTC day: a year is 365 rows per key, not 8,760."""

    workspace_id = IdField("ws_")
    day = models.DateField()
    key = models.CharField(max_length=80)
    count = models.BigIntegerField()

    class Meta:
        db_table = "analytics_tallyday"
        constraints = [models.UniqueConstraint(fields=["workspace_id", "day", "key"], name="one_tally_a_day")]

    def __str__(self) -> str:
        return f"{self.key} {self.count}"


class SliceCounter(models.Model):
    """The count of one key in a UTC day for the emails of a slice (core.counters.slices)."""

    slice = models.UUIDField()
    day = models.DateField()
    key = models.CharField(max_length=80)
    count = models.BigIntegerField()

    class Meta:
        db_table = "analytics_slice"
        constraints = [models.UniqueConstraint(fields=["slice", "day", "key"], name="one_count_a_slice_and_day")]

    def __str__(self) -> str:
        return f"{self.key} {self.count}"
