"""German formats."""

DATE_FORMAT = "d.m.Y"
DATETIME_FORMAT = "d.m.Y, H:i"
MONTH_DAY_FORMAT = "j. M"
SECONDS_FORMAT = "d.m.Y, H:i:s"
