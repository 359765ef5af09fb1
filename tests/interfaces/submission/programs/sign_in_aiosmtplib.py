"""Sends a message by aiosmtplib. Arguments: port, API key, mechanism and subject."""

import asyncio
import sys

import aiosmtplib

port, key, mechanism, subject = sys.argv[1:]
message = f"From: hi@alice.example\r\nTo: ada@example.com\r\nSubject: {subject}\r\n\r\nIt works.\r\n"


async def send() -> None:
    async with aiosmtplib.SMTP("127.0.0.1", int(port), use_tls=False, timeout=30) as client:
        sign_in = client.auth_plain if mechanism == "PLAIN" else client.auth_login
        await sign_in("postrider", key)
        await client.sendmail("hi@alice.example", ["ada@example.com"], message)


asyncio.run(send())
