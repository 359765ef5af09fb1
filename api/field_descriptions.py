"""Descriptions of the fields of requests and responses, in addition to the help texts of serializers.

The same field appears in several resources, so a description is looked up by schema and field, then by the field.
"""

from typing import Any

from api.pagination import MAX_LIMIT

Schema = dict[str, Any]
EMAIL_COUNT = "The number of these emails that"
KEY_LIMITS = {
    "domains": "The domains that the key can send from. Requires the scope `sending_access`.",
    "networks": "The networks from which the key can be used: addresses, or ranges such as 203.0.113.0/24.",
    "templates": "The ids or aliases of the templates that the key can send with; it cannot send without a template. "
    "Requires the scope `sending_access`.",
    "requestsPerSecond": "The number of requests per second, also as a burst; null for the limit of the workspace.",
}
DESCRIPTIONS = {
    # Fields of many resources.
    "id": "The id of the resource. Store it unchanged.",
    "createdAt": "The time of creation.",
    "data": "The items, newest first.",
    "total": "The number of items on all pages.",
    "page": "The number of this page, from 1.",
    "limit": f"The number of items per page, at most {MAX_LIMIT}.",
    "deleted": "Always true.",
    "warnings": "Parts of the request that were accepted but may be mistakes.",
    # Emails.
    "from": "The sender: an address of a domain of the workspace, with or without a name.",
    "to": "The recipient: an address, with or without a name.",
    "cc": "The addresses in Cc. They receive the email and every recipient sees them.",
    "bcc": "The addresses in Bcc. They receive the email and no other recipient sees them.",
    "replyTo": "The address or addresses to which replies go.",
    "subject": "The subject.",
    "html": "The HTML content.",
    "text": "The plain-text content.",
    "tags": "Names for filters and statistics, such as `welcome`. Recipients do not see them.",
    "metadata": "Custom data of your application, returned unchanged. Recipients do not see it.",
    "headers": "Custom header fields of the message, by name.",
    "attachments": "The attached files and inline images.",
    "scheduledFor": "The time at which the email is sent; null if it is sent immediately.",
    "status": "The current status.",
    "sentAt": "The time at which the next mail server accepted the message; null before that.",
    "deliveredAt": "The time at which the recipient's mail server accepted the message; null before that.",
    "errorMessage": "The last delivery error; null if there is none.",
    "reason": "The classified reason of a bounce or failure, such as `unknown_user`; null without one.",
    "retryCount": "The largest number of repeated delivery attempts of a recipient.",
    "templateId": "The id of the template; null without one.",
    "templateData": "The values of the template's variables.",
    "recipients": "The recipients.",
    "SendInput.to": "The recipients: one address, or a list of 1 to 50. Each of them sees all addresses in `to`.",
    "SendInput.cc": "Further recipients that everybody sees: one address, or a list of up to 50.",
    "SendInput.bcc": "Further recipients that nobody else sees: one address, or a list of up to 50.",
    "SendInput.subject": "The subject. Required without `templateId`; with it, it replaces the template's subject.",
    "SendInput.html": "The HTML content, at most 1 MiB. Ignored with `templateId`.",
    "SendInput.text": "The plain-text content, at most 1 MiB. Generated from the HTML if absent. Ignored with "
    "`templateId`.",
    "SendInput.attachments": "Files and inline images: at most 10, and 10 MiB in total after decoding.",
    "SendInput.trackOpens": "Whether opens are tracked with a pixel.",
    "SendInput.trackClicks": "Whether clicks are tracked by rewriting links.",
    "filename": "The name of the file, without a path.",
    "contentType": "The media type of the file.",
    "FileInput.content": "The content of the file in base64.",
    "ResendInput.idempotencyKey": "Each key accepts one request per workspace. A repeat returns the first response.",
    "RescheduleInput.scheduledFor": "The new time, at most 30 days ahead; null sends the email now.",
    "BatchInput.recipients": "The recipients, 1 to 500. Each receives a separate email.",
    "BatchRecipientInput.metadata": "Custom data of this email, merged into the shared `metadata`.",
    "BatchAccepted.ids": "The ids of the accepted emails, in the order of the request.",
    "BatchAccepted.emails": "The accepted emails, in the order of the request.",
    "BatchAccepted.rejected": "The suppressed recipients, which get no email.",
    "BatchRejection.code": "The reason for the rejection.",
    "Email.text": "The plain-text content; empty if the email has only HTML.",
    "Email.recipients": "All recipients, each with its own status.",
    "Recipient.email": "The address of the recipient.",
    "Recipient.type": "The field of the email that contains the address.",
    "DryRun.valid": "Always true; an invalid request returns an error.",
    "DryRun.subject": "The rendered subject.",
    "DryRun.html": "The rendered HTML.",
    "DryRun.text": "The rendered text.",
    # Events.
    "Event.id": "The id of the event, which webhooks send as well.",
    "Event.createdAt": "The time of the event.",
    "eventType": "The type of the event.",
    "payload": "The details of the event, which depend on its type.",
    "emailId": "The id of the email.",
    "Timeline.data": "The events, oldest first.",
    # Warnings.
    "Warning.code": "The machine-readable code of the warning.",
    "message": "An explanation for people.",
    "variables": "The names of the template's variables without a value.",
    "Warning.variable": "The name of the variable.",
    "indexes": "The indexes of the recipients in the request, from 0.",
    # Templates.
    "name": "The name.",
    "alias": "A name that works in place of the id; null without one. Unique in the workspace.",
    "htmlContent": "The HTML, in the template language.",
    "textContent": "The plain text, in the template language; empty without one.",
    "strictVariables": "Whether a missing variable refuses the email. Otherwise it is rendered as an empty string.",
    "updatedAt": "The time of the last change.",
    "PreviewInput.data": "The values of the template's variables.",
    "missingVariables": "The names of variables without a value and without a default.",
    # Webhooks.
    "url": "The URL that receives the events.",
    "events": "The types of events that the endpoint receives, with or without the prefix `email.`.",
    "format": "The format of the events: that of Postrider, or that of another service.",
    "active": "Whether events are delivered.",
    "disabledReason": "The reason why Postrider disabled the webhook; null if it did not.",
    "secret": "The key of the signatures. It is shown only here: store it.",
    "webhookId": "The id of the webhook.",
    "eventId": "The id of the event, the same on every attempt.",
    "event": "The type of the event.",
    "test": "Whether this is a test event.",
    "attemptCount": "The number of attempts so far.",
    "statusCode": "The HTTP status of the last response; null without one.",
    "error": "The code of the last error; null after a success.",
    "nextAttemptAt": "The time of the next attempt; null if there is none.",
    "succeededAt": "The time of the successful attempt; null without one.",
    "attempts": "The last 20 attempts, oldest first.",
    "Delivery.body": "The body, exactly as it is sent.",
    "Attempt.at": "The time of the attempt.",
    "durationMs": "The duration in milliseconds.",
    "answer": "The first 4 KiB of the response; null without one.",
    # Suppressions.
    "email": "The address.",
    "emails": "Up to 1,000 addresses, in place of `email`.",
    "Suppression.reason": "The reason of the suppression.",
    "SuppressionList.data": "The suppressions, in the order of the request.",
    # Domains.
    "Domain.records": "The DNS records to publish, and the results of the last check.",
    "Domain.warnings": "Problems that none of the records can fix.",
    "Domain.status": "`verified` once DKIM and SPF are found; `temporary_failure` if DNS did not answer.",
    "Record.status": "The result of the last check of this record.",
    "tls": "`required`: emails leave only over TLS with a valid certificate. `opportunistic`: where a host offers it.",
    "verifiedAt": "The time of the verification; null before it.",
    "lastCheckedAt": "The time of the last check; null before the first.",
    "DomainWarning.code": "The machine-readable code of the warning.",
    # Analytics and queue.
    "Analytics.from": "The start of the range, rounded down to the hour.",
    "Analytics.to": "The end of the range, rounded up to the hour.",
    "Analytics.total": "The number of emails created in the range, without cancelled and still scheduled ones.",
    "breakdown": "The number of these emails that had each event at least once.",
    "rates": "Each of these counts divided by `total`; 0 if `total` is 0.",
    "delivered": f"{EMAIL_COUNT} were delivered.",
    "bounced": f"{EMAIL_COUNT} bounced.",
    "opened": f"{EMAIL_COUNT} were opened.",
    "clicked": f"{EMAIL_COUNT} were clicked.",
    "deliveryRate": "Delivered emails divided by all emails.",
    "bounceRate": "Bounced emails divided by all emails.",
    "openRate": "Opened emails divided by all emails.",
    "clickRate": "Clicked emails divided by all emails.",
    "date": "The day, in UTC.",
    "Day.total": "The number of emails created on this day.",
    "Days.data": "The days, oldest first, including today.",
    "waiting": "Recipients that are due.",
    "Stats.active": "Recipients that a worker is sending to.",
    "delayed": "Recipients that are scheduled or wait for a retry.",
    "completed": "Recipients whose message was accepted by the next mail server, since the workspace was created.",
    "failed": "Recipients that bounced or failed, since the workspace was created.",
    "paused": "Recipients that wait because the workspace is suspended.",
    # Account.
    "workspace": "The workspace of the key.",
    "plan": "The plan, which sets quota, domains and retention.",
    "key": "The API key of the request.",
    "scope": "The scope of the key.",
    "quota": "The monthly quota of emails.",
    "Quota.limit": "The number of emails per month; null if unlimited.",
    "used": "The number of emails used this month.",
    "remaining": "The number of emails left this month; null if unlimited.",
    "resetsAt": "The time at which the quota starts again.",
    # Management.
    "expiresAt": "The time at which it expires; null if it does not.",
    "revokedAt": "The time at which it was revoked; null if it was not.",
    "lastUsedAt": "The time of its last use, to the minute; null if it was never used.",
    "lastFour": "The last four characters of the key.",
    **{
        f"{schema}.test": f"Whether {subject}: nothing is sent, and it does not count."
        for schema, subject in (
            ("Key", "it is a test key"),
            ("ManagedKey", "it is a test key"),
            ("NewKey", "it is a test key"),
            ("Email", "a test key sent the email"),
        )
    },
    "limits": "The limits of the key. An empty or missing value is no limit.",
    **{f"{schema}.{field}": text for schema in ("KeyLimits", "KeyLimitsInput") for field, text in KEY_LIMITS.items()},
    "NewKey.key": "The key. It is shown only here: store it.",
    "role": "The role of the member.",
    "group": "The group of the workspace, whose management keys can manage it; empty without one.",
    "deletesAt": "The time at which the data of a deleted workspace is deleted; null if the workspace is not deleted.",
    "suspendedAt": "The time of the suspension; null if the workspace is not suspended.",
    "suspendedReason": "The reason of the suspension, as the members see it; null without one.",
    "months": "The emails of each month.",
    "action": "The recorded action.",
    "about": "The object of the action.",
    "actorKind": "The kind of the actor.",
    "actor": "The person, key or program that acted.",
    "address": "The IP address of the actor.",
    "ConfigurationInput.id": "The id of the workspace, if its name changes.",
    "domains": "The sending domains.",
    "templates": "The templates, each with an alias.",
    "webhooks": "The webhook endpoints.",
    "apiKeys": "The API keys that exist.",
    "domainNames": "The names of the domains in lower case and ASCII, as responses have them.",
    # Errors.
    "code": "The machine-readable code of the error.",
    "errors": "All invalid fields.",
    "field": "The path of the field, such as `to[0]`.",
    "detail": "A human-readable explanation.",
    "NetworkNotAllowedProblem.address": "The address of the client.",
    "allowedNetworks": "The networks from which the key can be used.",
    "allowedDomains": "The domains that the key can send from.",
    "allowedTemplates": "The templates that the key can send with.",
    "requiredScope": "A scope that allows the operation.",
    "resource": "The resource whose limit is reached.",
    "requested": "The number of emails in the request.",
    "line": "The line of the error, from 1.",
    "column": "The column of the error, from 1.",
    "domain": "The domain of the sender.",
    "missingRecords": "The DNS records that were not found.",
    "record": "The purpose of the record.",
    "type": "The type of the DNS record.",
    "fqdn": "The full name of the record.",
    "value": "The value to publish.",
    "suppressionId": "The id of the suppression.",
    "RecipientSuppressedProblem.recipients": "The suppressed recipients.",
    "QuotaExceededProblem.limit": "The number of emails per month.",
    "AttachmentsTooLargeProblem.limit": "The largest total size, in bytes.",
    "TooManyAttachmentsProblem.limit": "The largest number of attachments.",
    "TooManyRecipientsProblem.limit": "The largest number of recipients in this field.",
    "PlanLimitReachedProblem.limit": "The number that the plan allows.",
}


def describe_fields(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """Return the schemas with a description of each property that has none."""
    return {name: _described(schema, name) for name, schema in schemas.items()}


def _described(schema: Schema, name: str) -> Schema:
    """Return a schema with descriptions, also in nested objects and in the parts of a combination.

    The schemas share values, which must not be changed.
    """
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {
            field: _property(_described(one, name), name, field) for field, one in schema["properties"].items()
        }
    if "items" in schema:
        result["items"] = _described(schema["items"], name)
    if "allOf" in schema:
        result["allOf"] = [_described(part, name) for part in schema["allOf"]]
    return result


def _property(schema: Schema, name: str, field: str) -> Schema:
    text = DESCRIPTIONS.get(f"{name}.{field}") or DESCRIPTIONS.get(field)
    return schema if "description" in schema or not text else {**schema, "description": text}
