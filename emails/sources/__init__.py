"""Sources: the own addresses that email is sent from, watched for block lists and reverse DNS (docs/decisions/0349)."""
