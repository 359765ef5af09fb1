"""`/v1/inbound`: routes, blocks, received emails and their downloads."""
