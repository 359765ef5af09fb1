"""English formats: 24 hours, and the day before the month."""

DATE_FORMAT = "j M Y"
DATETIME_FORMAT = "j M Y, H:i"
MONTH_DAY_FORMAT = "j M"
# A format with seconds, in timelines; Django has no name for it.
SECONDS_FORMAT = "j M Y, H:i:s"
