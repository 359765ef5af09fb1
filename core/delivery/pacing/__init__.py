"""The pace of each receiver: its arithmetic, the pairs of sources and receivers, and the share of a process."""
