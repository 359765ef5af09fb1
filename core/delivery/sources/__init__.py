"""Sources: the addresses that a direct transport connects from, as block lists and the DNS see them."""
