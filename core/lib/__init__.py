"""Code without business logic: `worker/`, `mail/`, `network/`, ids, tokens, the key ring, SQL."""
