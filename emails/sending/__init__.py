"""Sending: from a claimed queue entry to the recorded outcome of its delivery attempt.

The questions before a message leaves, in order, each with the cause for which it waits otherwise (WaitCause;
`sending_checks` also says what an email waits for now):

1. A person has approved it, if its key or stream requires that (`approval`): `emails.approvals`. Its scheduled time,
   the time of its next attempt (`retry`) or the end of its wait has come, and its batch is not paused
   (`batch_paused`): `scheduling`, before each claim.
2. Sending is not paused (`sending_paused`), and the workspace is neither suspended (`workspace_suspended`) nor deleted
   (`workspace_deleted`): `queue`, in the statement of each claim.
3. Its attachments fit into the memory of this process (`memory`): `jobs`.
4. Its stream is not paused (`stream_paused`), the recipient rules do not refuse the address, it is not suppressed, the
   sending domain is registered, and its DKIM key can be read (`signing_key`): `sending_checks`. A refusal is recorded
   as an outcome.
5. The recipient is not one of the simulator, and the email is not a test email: `core.delivery.transports.simulator`.
   The message is not captured in its place: `diversion`, and `core.delivery.diverting`.
6. A transport of its route works (`transport`) and has not reached its daily limit (`daily_limit`): `assignments`, and
   again `core.delivery.transports.router`.
7. The destination is not paused after failures and has a free connection (`destination`):
   `core.delivery.transports.destinations`. For a direct delivery, an address has a connection, a rate and messages of
   the day left at the receiver (`receiver_pace`): `core.delivery.pacing.choice` and `core.delivery.pacing.shares`. An
   entry waits for it until it is released (`emails.pacing`), or for as long as its route permits
   (docs/decisions/0370). It goes to permitted network addresses only: `core.delivery.transports.smtp.mx`.
8. The connection has TLS if the domain or the operator requires it, and the host takes a message of this size to such
   an address: `core.delivery.transports.smtp.session`.
9. Just before the final dot, the lease is valid, and the address was not suppressed since the claim: the permit of
   `emails_work`, asked by the transport.

A result is recorded only if the lease was never lost: `outcomes`.
"""
