"""Features of Postmark's API that Postrider lacks, or has in another way: https://postmarkapp.com/developer."""

# Paths by the methods that are absent. The account API (servers, domains, sender signatures) is absent, too.
ABSENT = {
    ("GET",): (
        "/messages/outbound/:id/dump",
        "/messages/outbound/clicks", "/messages/outbound/opens", "/stats/outbound/clicks/browserFamilies",
        "/stats/outbound/clicks/location", "/stats/outbound/clicks/platforms", "/stats/outbound/opens/emailClients",
        "/stats/outbound/opens/platforms", "/stats/outbound/opens/readTimes", "/stats/outbound/tracked",
    ),
}  # fmt: skip
# The difference of each endpoint, or the reason of its absence.
NOTES = {
    "POST /email": "see above",
    "POST /email/withTemplate": "template language",
    "POST /email/batchWithTemplates": "template language",
    "POST /email/bulk": "at most 500 messages, accepted together or not at all",
    "GET /bounces": "emails that no recipient received",
    "GET /bounces/tags": "of the newest 1,000 bounced emails",
    "GET /bounces/:id": "also deferrals and spam complaints, by the number of their webhook",
    "GET /bounces/:id/dump": "the reply of the mail host: the source is not stored",
    "GET /deliveryStats": "all bounced emails, and the recipients of the newest 10,000 bounces by type; "
    "`InactiveMails` counts to 10,000",
    "GET /server": "the name of the workspace, and what is received; other settings have their defaults",
    "PUT /server": "`InboundHookUrl`, `InboundDomain`, `RawEmailEnabled` and `InboundSpamThreshold`; "
    "`Name` with a key of the scope `workspace_admin`",
    "GET /messages/outbound/:id/details": "without the source",
    "GET /messages/outbound/opens/:id": "the first open of each recipient, without its program and place",
    "GET /messages/outbound/clicks/:id": "the first click on each link, without its program and place",
    "GET /messages/inbound": "without the content of attachments; `tag` matches nothing",
    "PUT /messages/inbound/:id/retry": "also a message that was delivered",
    "POST /triggers/inboundRules": "an address or a domain",
    "POST /templates": "translated",
    "PUT /templates/:id": "translated; the type does not change",
    "PUT /templates/push": "a workspace is a server: the account token is the keys of both, separated by a comma",
    "GET /message-streams/:stream/suppressions/dump": "also those of the workspace; the newest 10,000",
    "POST /message-streams/:stream/suppressions/delete": "those of the workspace in `outbound` only",
    "GET /message-streams": "without a default stream `broadcast`; `UpdatedAt` is null",
    "POST /message-streams": "with the unsubscribe link unless `UnsubscribeHandlingType` is set; no type `Inbound`",
    "POST /message-streams/:stream/archive": "nothing is purged at the `ExpectedPurgeDate`",
    "GET /webhooks": "those with the format `postmark`",
    "POST /webhooks": "the events of all streams without `MessageStream`; passwords and values of headers are shown "
    "masked",
    "PUT /webhooks/:id": "as `POST`",
    "GET /stats/outbound": "of all streams, or of a `messagestream`; `Tracked` and the other counts that Postrider "
    "does not keep are 0",
    "GET /stats/outbound/sends": "see above",
    "GET /stats/outbound/bounces": "all as `HardBounce`",
    "GET /stats/outbound/spam": "see above",
    "GET /stats/outbound/opens": "emails that were opened",
    "GET /stats/outbound/clicks": "emails in which a link was clicked",
}
