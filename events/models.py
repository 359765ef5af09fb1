"""The event feed: references to the events of a workspace, in the order of `/v1/events`.

Only events.sequencer writes these tables (docs/decisions/0142).
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from lib.model_fields import IdField


class FeedSource(models.TextChoices):
    EMAILS = "emails"
    WORKSPACES = "workspaces"


class FeedEntry(models.Model):
    """The position of one event, by its number in the source: emails.Event or workspaces.WorkspaceEvent.

    Positions increase in the order in which the entries become visible, so a reader never misses a late one. The entry
    of a deleted event stays until retention deletes it.
    """

    pk = models.CompositePrimaryKey("workspace_id", "position")
    workspace_id = IdField("ws_")
    position = models.BigIntegerField()
    source = models.CharField(max_length=10, choices=FeedSource.choices)
    number = models.BigIntegerField()
    recorded_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.source} {self.number}"


class FeedHead(models.Model):
    """The highest position. The only row; its lock makes one process the sequencer."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    position = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.position)


class FeedProgress(models.Model):
    """The numbers of a source that are not in the feed yet: those above `last`, and two multiranges of gaps.

    A gap is a number that an uncommitted transaction may use. gaps: those whose possible writers were `writers`, as
    virtual transaction ids. new_gaps: found since.
    """

    source = models.CharField(max_length=10, choices=FeedSource.choices, primary_key=True)
    last = models.BigIntegerField(default=0)
    gaps = models.TextField(default="{}")
    new_gaps = models.TextField(default="{}")
    writers = ArrayField(models.TextField(), default=list)

    def __str__(self) -> str:
        return f"{self.source} {self.last}"
