"""Features of SendGrid's API that Postrider lacks, or has in another way.

https://www.twilio.com/docs/sendgrid/api-reference

The endpoints are those about sending, templates, suppressions, domains, webhooks and statistics; all others are absent.
"""

# Paths by the methods that are absent.
ABSENT = {
    ("GET",): (
        "/v3/categories", "/v3/categories/stats", "/v3/categories/stats/sums", "/v3/messages", "/v3/scopes/requests",
        "/v3/whitelabel/domains/default", "/v3/whitelabel/links/default",
    ),
    ("POST",): (
        "/v3/whitelabel/domains/:id/ips",
        "/v3/whitelabel/domains/:id/subuser", "/v3/whitelabel/ips/:id/validate", "/v3/whitelabel/links/:id/subuser",
        "/v3/whitelabel/links/:id/validate",
    ),
    ("PATCH",): ("/v3/scopes/requests/:id/approve", "/v3/whitelabel/domains/:id"),
    ("DELETE",): (
        "/v3/scopes/requests/:id", "/v3/whitelabel/domains/:id/ips/:ip",
    ),
    ("GET", "POST"): (
        "/v3/whitelabel/ips",
        "/v3/whitelabel/links",
    ),
    ("GET", "DELETE"): (
        "/v3/whitelabel/domains/subuser", "/v3/whitelabel/ips/:id", "/v3/whitelabel/links/subuser",
    ),
    ("GET", "PATCH", "DELETE"): (
        "/v3/whitelabel/links/:id",
    ),
}  # fmt: skip
# Settings of events that do not exist here: an unsubscribe from a group is the event `unsubscribe`.
ABSENT_EVENTS = ("group_unsubscribe", "group_resubscribe", "account_status_change")
# Settings of an event webhook. Ignoring them would leave a receiver without the authentication that it expects.
REFUSED_SETTINGS = ("oauth_client_id", "oauth_client_secret", "oauth_token_url")
# The difference of each endpoint, or the reason of its absence.
NOTES = {
    "POST /v3/mail/send": "see above",
    "POST /v3/user/scheduled_sends": "a cancelled batch takes effect at once and stays cancelled",
    "PATCH /v3/user/scheduled_sends/:id": "a cancelled batch cannot be paused",
    "DELETE /v3/user/scheduled_sends/:id": "resumes a paused batch; cancelled emails stay cancelled",
    "GET /v3/messages": "`GET /v1/emails`",
    "GET /v3/templates": "all in one page",
    "GET /v3/templates/:id": "by id or alias",
    "POST /v3/templates/:id/versions": "replaces the content; the name and `test_data` are not stored",
    "DELETE /v3/templates/:id/versions/:version": "empties the template",
    "POST /v3/templates/:id/versions/:version/activate": "the only version is active",
    "DELETE /v3/suppression/bounces": "at most 1,000",
    "DELETE /v3/suppression/spam_reports": "at most 1,000",
    "GET /v3/suppression/unsubscribes": "also addresses that were suppressed by hand",
    "GET /v3/suppression/blocks": "always empty: a block does not suppress an address",
    "DELETE /v3/suppression/blocks": "deletes nothing",
    "GET /v3/suppression/blocks/:address": "always empty",
    "DELETE /v3/suppression/blocks/:address": "always 404",
    "GET /v3/suppression/invalid_emails": "always empty",
    "DELETE /v3/suppression/invalid_emails": "deletes nothing",
    "GET /v3/suppression/invalid_emails/:address": "always empty",
    "DELETE /v3/suppression/invalid_emails/:address": "always 404",
    "POST /v3/asm/suppressions/global": "at most 1,000 addresses",
    "GET /v3/asm/groups": "the streams other than `main`; `unsubscribes` counts to 10,000",
    "POST /v3/asm/groups": "a public bulk stream, whatever `is_default` is",
    "PATCH /v3/asm/groups/:id": "`is_default` is `public` of the stream",
    "DELETE /v3/asm/groups/:id": "archives the stream; its suppressions stay",
    "GET /v3/asm/groups/:id/suppressions": "the newest 10,000",
    "GET /v3/asm/suppressions": "the newest 10,000",
    "GET /v3/whitelabel/domains": "with the records of Postrider",
    "POST /v3/whitelabel/domains": "only `domain` is used",
    "GET /v3/whitelabel/links": "links lead to `PUBLIC_URL`",
    "GET /v3/user/webhooks/event/settings": "the oldest endpoint with the format `sendgrid`",
    "PATCH /v3/user/webhooks/event/settings": "creates it; settings that are left out do not change",
    "POST /v3/user/webhooks/event/settings": "without OAuth; `friendly_name` is not stored",
    "PATCH /v3/user/webhooks/event/settings/:id": "settings that are left out do not change",
    "GET /v3/user/webhooks/event/settings/signed": "of the oldest endpoint",
    "PATCH /v3/user/webhooks/event/settings/signed": "events are always signed",
    "PATCH /v3/user/webhooks/event/settings/signed/:id": "events are always signed",
    "POST /v3/user/webhooks/event/test": "posts to the URL of the settings only",
    "GET /v3/user/webhooks/parse/settings": "the routes `*` with one endpoint of the format `sendgrid`",
    "POST /v3/user/webhooks/parse/settings": "`spam_check` needs a spam filter of the operator, "
    "and is on by default where there is one",
    "GET /v3/user/webhooks/parse/stats": "by day; of all routes",
    "GET /v3/stats": "by day; each email counts once; `blocks`, `deferred`, `unsubscribes` and drops are 0",
}
