"""The APIs of Resend, Postmark and SendGrid for applications that move: each request becomes a `Draft` of `/v1`."""
