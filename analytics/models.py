"""Counters: what is folded, and what is still to be."""

from django.db import models

from lib.model_fields import IdField


class Tally(models.Model):
    """How many things of a kind there are, by workspace and UTC hour of the email's creation."""

    workspace_id = IdField("ws_")
    hour = models.DateTimeField()
    key = models.CharField(max_length=80)
    count = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace_id", "hour", "key"], name="one_tally_an_hour")]

    def __str__(self) -> str:
        return f"{self.key} {self.count}"


class TallyDelta(models.Model):
    """A change that is not folded into its Tally yet; written with the change that it counts."""

    workspace_id = IdField("ws_")
    hour = models.DateTimeField()
    key = models.CharField(max_length=80)
    change = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["workspace_id", "hour"], name="delta_workspace")]

    def __str__(self) -> str:
        return f"{self.key} {self.change:+}"


class TallyDay(models.Model):
    """The tallies of a UTC day, summed: a year is read in 365 rows a key and not in 8,760."""

    workspace_id = IdField("ws_")
    day = models.DateField()
    key = models.CharField(max_length=80)
    count = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace_id", "day", "key"], name="one_tally_a_day")]

    def __str__(self) -> str:
        return f"{self.key} {self.count}"
