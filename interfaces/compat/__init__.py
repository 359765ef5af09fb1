"""The APIs of Resend, Postmark and SendGrid for applications that move: a package translates each one to `/v1`."""
