"""`python -m postrider_client.cli`, the same program as `postrider`."""

from postrider_client.cli import main

main()
