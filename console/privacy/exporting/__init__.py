"""Export of people: the records and messages of an address, as a zip (docs/decisions/0373)."""
