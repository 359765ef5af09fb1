"""Sending: from a claimed queue entry to the recorded outcome of its delivery attempt.

The checks before a message leaves, in order:

1. Sending is not paused, and the workspace is neither suspended nor about to be deleted: `queue`, on every claim.
2. Its attachments fit into the memory of this process; otherwise the entry is released: `jobs`.
3. Its stream is not paused, the address is not suppressed, the sending domain is registered and its DKIM key can be
   read: `sending_checks`. A refusal is recorded as an outcome, and an unreadable key parks the entry.
4. The recipient is not one of the simulator, and the email is not a test email: `core.delivery.transports.simulator`.
5. The destination is not paused after failures and has a free connection: `core.delivery.transports.destinations`. A
   direct delivery goes to permitted network addresses only: `core.delivery.transports.smtp.mx`.
6. The connection has TLS if the domain or the operator requires it, and the host takes a message of this size to such
   an address: `core.delivery.transports.smtp.session`.
7. Just before the final dot, the lease is valid, and the address was not suppressed since the claim: the permit of
   `emails_work`, asked by the transport.

A result is recorded only if the lease was never lost: `outcomes`.
"""
