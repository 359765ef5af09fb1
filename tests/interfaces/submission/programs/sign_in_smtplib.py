"""Sends a message by smtplib, with and without an initial response. Arguments: port, API key, mechanism and subject."""

import smtplib
import sys

port, key, mechanism, subject = sys.argv[1:]
message = f"From: hi@alice.example\r\nTo: ada@example.com\r\nSubject: {subject}\r\n\r\nIt works.\r\n"
for has_initial_response in (False, True):
    with smtplib.SMTP("127.0.0.1", int(port), timeout=30) as client:
        client.ehlo()
        client.user, client.password = "postrider", key
        response = client.auth_plain if mechanism == "PLAIN" else client.auth_login
        client.auth(mechanism, response, initial_response_ok=has_initial_response)
        if has_initial_response:
            client.sendmail("hi@alice.example", ["ada@example.com"], message)
