"""SMTP replies of receiving, the same over SMTP and where `/v1` says what the server would answer."""

ACCEPTED = "250 2.1.5 OK"
NO_SUCH_ADDRESS = "550 5.1.1 No such address"
REJECTED = "550 5.1.1 The recipient does not accept email"
BLOCKED = "550 5.7.1 Sender not allowed"
LISTED = "550 5.7.1 The address of your server is on a block list"
SUSPENDED = "450 4.2.1 The recipient is temporarily unavailable"
DAY_IS_FULL = "452 4.7.1 The recipient received too many messages today"
STORAGE_FULL = "452 4.2.2 The storage of the recipient is full"
NETWORK_DAY_IS_FULL = "452 4.7.1 The recipient received too many messages from your network today"
NETWORK_STORAGE_FULL = "452 4.2.2 The storage of the recipient for messages from your network is full"
NETWORK_LIMIT = "452 4.7.1 Too many messages from your network"
TOO_MANY_RECIPIENTS = "452 4.5.3 Too many recipients"
OTHER_KIND = "452 4.5.3 Send this recipient a separate message"
NO_MEMORY = "452 4.3.1 Not enough memory, try again later"
TOO_LARGE = "552 5.3.4 Message too large"
TOO_LARGE_FOR_RECIPIENT = "552 5.2.3 Message too large for the recipient"
MAIL_LOOP = "554 5.4.6 Mail loop"
TOO_MANY_SESSIONS = "452 4.3.2 Too many sessions for this recipient"


def stored(email_id: str) -> str:
    return f"250 2.6.0 <{email_id}> Stored"
