"""Messages of the services in the language of the page.

The services and the API are English, and some of their messages are stored: results of DNS checks, reasons of a
suspension. A message is recognized by the text that it was made from.
"""

import re
from collections.abc import Iterator
from functools import cache

from django.utils.formats import number_format
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_noop as _

# Longer texts are not messages of ours; the bound keeps the search short.
MAX_LENGTH = 1000
# Messages within values, and sentences that follow one another; ours have up to five.
MAX_LEVELS = 10
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
NUMBER = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?")

# Placeholders of words that dashboard.ui.labels lists.
STATUS_NAMES = {"status", "reason"}

# A value that is a message itself is translated too.
MESSAGES = (
    # domains
    _("%(name)s is not a domain name. Give only the name, %(inner)s."),
    _("%(name)s is not a domain name such as mail.example.com."),
    _("%(name)s is an IP address, not a domain name."),
    _("%(name)s is a public suffix. Register a domain that you own."),
    _("%(name)s is a public mail provider. Register a domain whose DNS you control."),
    _("%(name)s is not a domain name."),
    _("%(count)s domains of this workspace are being checked. Try again in a few seconds."),
    _("%(name)s is not verified in this workspace. Publish its DNS records, then verify it."),
    _(
        "%(name)s is not registered in this workspace. Add it on the page Domains of the dashboard, or with "
        "POST /v1/domains."
    ),
    _("%(name)s is already registered in this workspace."),
    _("The domain limit of the %(plan)s plan (%(limit)s) is reached. Delete a domain or change the plan."),
    _("Keep this record until %(day)s: messages signed with it may still be in transit. Then delete it."),
    _("Publish this record and keep the existing one: %(key)s keeps signing until this record is found."),
    # results of DNS checks
    _(
        "%(name)s has a null MX record and accepts no email (RFC 7505): replies are lost, and some receivers reject "
        "its email."
    ),
    _("The DNS lookup failed (%(error)s). The status of the domain is unchanged, and the lookup will be retried."),
    _("No TXT record found at %(name)s."),
    _("No CNAME record found at %(name)s."),
    _("No SPF record found at %(name)s."),
    _("No DMARC record found at %(name)s."),
    _("%(name)s is a CNAME for %(target)s, so it cannot have other records. Publish the record at %(place)s."),
    _("It was found at %(place)s: your DNS provider appends the domain. Enter the name without the domain."),
    _("It was found at %(place)s, without the subdomain. Publish it at %(name)s instead."),
    _("It was found at %(place)s. Publish it at %(name)s instead."),
    _("The CNAME points to %(found)s. Change it to %(target)s."),
    _("The record is invalid: %(error)s"),
    _("%(part)s has no =. Write tags as name=value, separated by semicolons."),
    _("%(tag)s= occurs more than once. Keep one."),
    # DKIM
    _("Remove t=y: it marks the key as a test, so receivers may ignore its signatures."),
    _("%(count)s TXT records found at %(name)s. Keep only the one shown here."),
    _("The value contains quotation marks or backslashes. Enter it without them; your DNS provider adds them."),
    _("The key is truncated after %(count)s of %(all)s characters. Publish the complete value."),
    _("The record contains a different key. Replace it with the value shown here."),
    _("The record is not a DKIM key: it has no p= tag. Publish the complete value."),
    _("The key is revoked (p= is empty). Publish the value again."),
    _("The record must begin with v=DKIM1."),
    _("The k= tag must be rsa."),
    _("h= does not include sha256, which the signatures use. Remove the h= tag."),
    _("s= does not include email. Remove the s= tag."),
    # DMARC
    _("The policy of %(domain)s applies to this domain. A separate record is not required."),
    _("The policy of %(domain)s applies, but older receivers do not find it. Publish one here too."),
    _("%(count)s DMARC records found; receivers ignore all of them. Keep only one."),
    _("The record must begin with v=DMARC1; and must not contain quotation marks or backslashes."),
    _("The record has no p= tag. Add one, such as p=none."),
    _("At %(domain)s: %(error)s"),
    _("%(tag)s=%(value)s must be %(rule)s."),
    _("none, quarantine or reject"),
    _("r or s"),
    _("y, n or u"),
    _("y or n"),
    _("0, 1, d or s, separated by colons"),
    _("a number from 0 to 100"),
    _("addresses such as mailto:dmarc@example.com, separated by commas"),
    # SPF
    _("The record has %(count)s characters, but receivers read at most %(limit)s. Shorten it."),
    _("%(count)s SPF records found; receivers ignore all of them. Replace them with the record shown here."),
    _("This record uses %(count)s of the %(limit)s DNS lookups that receivers allow."),
    _("It will use %(count)s of the %(limit)s DNS lookups."),
    _("%(names)s is missing or has no effect in its position. Replace the record with the one shown here."),
    _("The record must begin with v=spf1 and a space, without quotation marks or backslashes."),
    _("+all allows any server to send as this domain. End the record with ~all or -all."),
    _("An included record has +all, which allows any server to send as this domain. Remove that include."),
    _("Add %(names)s to the record. Remove other terms first: the limit is %(limit)s characters."),
    _("The record needs %(count)s DNS lookups, but receivers stop at 10. Remove includes that are no longer used."),
    _("at least %(count)s"),
    _("%(term)s does not contain a valid domain name. Correct or remove it."),
    _("%(term)s resolves to %(count)s mail servers, but receivers stop at 10. Remove it."),
    _("%(count)s terms resolve to nothing, such as %(term)s. Remove them."),
    _("The record includes itself through %(target)s. Remove that include."),
    _("include:%(target)s has %(count)s SPF records, but receivers require exactly one. Correct or remove it."),
    _("The SPF record of include:%(target)s is invalid: %(error)s"),
    _("%(term)s is not an SPF mechanism. Use all, include:, a, mx, ip4: or ip6:."),
    _("%(term)s is not a valid %(name)s mechanism."),
    _("%(term)s is not a valid %(name)s address or network."),
    # addresses
    _("%(text)s: only recipients may have other than ASCII characters before the @."),
    _("An address must have at most %(limit)s characters."),
    _("An address must not contain control characters."),
    _("%(text)s is not an email address: %(error)s"),
    _("the < before the address is missing."),
    _("the domain has no dot."),
    _("it is too long."),
    _("it contains several addresses. Give each address as a separate string, several of them as a list."),
    _("omit mailto:."),
    _("write %(address)s."),
    _("An email address must have an @-sign."),
    _("There must be something before the @-sign."),
    _("There must be something after the @-sign."),
    _("The part after the @-sign is not valid. It should have a period."),
    _("The part after the @-sign is not valid. It is not within a valid top-level domain."),
    _("The part after the @-sign contains invalid characters: %(characters)s."),
    _("The email address contains invalid characters before the @-sign: %(characters)s."),
    _("The email address is too long: %(reason)s."),
    # templates
    _("%(field)s, line %(line)s, column %(column)s: %(error)s"),
    _("%(text)s is not a name: use alphanumeric characters, _ and -, joined by dots, as in user.name or items.0."),
    _("The only names that begin with @ are %(names)s."),
    _("A name can have at most %(limit)s characters."),
    _("A name can have at most %(limit)s segments."),
    _("Supported tags are {{name}}, {{{name}}}, {{#if}}, {{#unless}}, {{#each}}, {{else}} and {{! comments }}."),
    _("The tag is not closed: }} is missing."),
    _("The tag opens with {{{ and is not closed with }}}."),
    _("The comment opens with {{!-- and is not closed with --}}."),
    _('The default is not closed: its second " is missing.'),
    _('In a default, a backslash is only allowed before " or another backslash.'),
    _("The rendered template is larger than %(limit)s bytes. Send less data."),
    _("This request takes more than %(limit)s steps to render. Send fewer recipients or less data per request."),
    _("The template takes more than %(limit)s steps to render with this data. Send less data."),
    _("A tag takes one name; helpers and expressions are not supported."),
    _("Partials are not supported."),
    _("{{& }} is not supported: write {{{name}}} for an unescaped value."),
    _("Delimiters other than {{ and }} are not supported."),
    _("{{^ }} is not supported: write {{#unless name}}, or {{else}} inside a section."),
    _("Whitespace control with ~ is not supported."),
    _("%(tag)s takes one name; helpers and expressions are not supported."),
    _("{{else}} takes no name. Instead of {{else if}}, put an {{#if}} inside the {{else}}."),
    _("%(tag)s takes no name."),
    _('A default must be in double quotes, as in {{name|"there"}}.'),
    _("%(text)s is not a section. Use {{#if}}, {{#unless}} or {{#each}}."),
    _("A template can have at most %(limit)s tags."),
    _("Sections can be nested at most %(limit)s levels deep."),
    _("{{else}} is outside of any section."),
    _("%(tag)s already has an {{else}}."),
    _("%(tag)s closes a section that is not open."),
    _("%(tag)s found while %(opening)s is still open."),
    _("%(tag)s is not closed: %(end)s is missing."),
    _("%(name)s is only available inside {{#each}}."),
    _("There is no template with the id or alias %(name)s."),
    _("A workspace can have at most %(limit)s templates. Delete one first."),
    _("Another template of this workspace has the alias %(name)s."),
    _("An alias consists of A-Z, a-z, 0-9, dots, dashes and underscores, and begins with A-Z or a-z."),
    _("This is larger than 1 MiB in UTF-8."),
    _("The data has no value for %(names)s, and the template has strictVariables. Add a value or a default."),
    _("The body must be a JSON object."),
    _("The body is nested deeper than %(limit)s levels."),
    _("The key %(name)s appears more than once."),
    _("%(name)s is not a JSON number."),
    _("%(error)s at line %(line)s, column %(column)s."),
    # webhooks
    _("This is not a valid URL of at most %(limit)s characters; only the host may be non-ASCII."),
    _("The host of the URL is invalid."),
    _("Port %(port)s is not allowed; use %(ports)s."),
    _("The URL must begin with https://."),
    _("The URL must not contain a user name or password."),
    _("The URL must not contain a fragment or backslash."),
    _("Events cannot be posted to this URL: %(error)s."),
    _("A workspace can have at most %(limit)s webhooks. Delete one first."),
    _("The endpoint returned 410 Gone."),
    _("No event could be delivered for 3 days."),
    _("This list must not be empty."),
    # sending
    _("%(address)s is on the suppression list (%(reason)s)."),
    _("%(address)s and %(count)s more are on the suppression list (%(reason)s)."),
    _("This email was already sent and cannot be cancelled."),
    _("This email is %(status)s. Only scheduled emails can be cancelled."),
    _("A delivery attempt was made for a recipient of this email."),
    _("This email is no longer scheduled and cannot be rescheduled."),
    _("scheduledFor is in the past. Omit it to send immediately."),
    _("scheduledFor must be at most 30 days ahead."),
    _("This workspace is suspended and cannot send email. Contact the operator of this server."),
    _(
        "API keys of this workspace do not work until the owner confirms an email address. Open the link in the "
        "confirmation email, or request a new one in the dashboard."
    ),
    _("The plan allows %(limit)s emails per month; %(used)s are used and this request needs %(units)s more."),
    _(
        "A workspace can make %(count)s requests per second, with bursts of up to %(burst)s. Try again in %(seconds)s "
        "s; see Retry-After."
    ),
    _("A workspace can have at most %(limit)s API keys. Revoke one first."),
    _("This workspace is deleted. It can be restored until %(until)s."),
    _("from must not be later than to."),
    # limits of API keys
    _("A test key requires the scope sending_access."),
    _("This limit requires the scope sending_access: keys with other scopes can change domains and templates."),
    _("%(text)s is an address within a network. Give the network, %(network)s, or the address alone."),
    _("%(text)s is an IPv4 network in IPv6 form. Give the IPv4 network."),
    _("%(text)s is not a network such as 203.0.113.0/24 or 2001:db8::/32."),
    _("This must be the id or the alias of a template."),
    _("This must be from 1 to %(limit)s."),
    _("At most %(limit)s entries are allowed."),
    # reasons of a suspension
    _(
        "%(count)s of %(sent)s recipients in %(days)s days reported the email as spam: %(share)s%%, "
        "above the limit of %(limit)s%%."
    ),
    _(
        "%(count)s of %(sent)s recipients in %(days)s days had an invalid address: %(share)s%%, "
        "above the limit of %(limit)s%%."
    ),
    _("Clean your lists, then contact the operator of this service."),
    # the inbox
    _("The message has more than %(limit)s parts."),
    _("The message is malformed."),
    _("View the source for details."),
)

# The placeholder at the beginning of a text would match the beginning of another.
BY_PRECEDENCE = sorted(MESSAGES, key=lambda message: message.startswith("%("))


def translate_message(text: str, *, levels: int = MAX_LEVELS) -> str:
    """Return a message of a service in the active language; any other text unchanged."""
    if get_language() == "en" or len(text) > MAX_LENGTH or not levels:
        return text
    return next(_translations(text, levels), text)


def _translations(text: str, levels: int) -> Iterator[str]:
    for message in BY_PRECEDENCE:
        if match := pattern_of(message).fullmatch(text):
            values = {name: _translate_value(name, value, levels) for name, value in match.groupdict("").items()}
            rest = values.pop("rest", "")
            translated = gettext(message) % values
            yield f"{translated} {rest}" if rest else translated


def _translate_value(name: str, value: str, levels: int) -> str:
    if name in STATUS_NAMES:
        return gettext(value)
    if NUMBER.fullmatch(value):
        return number_format(value.replace(",", ""), force_grouping=True)
    return translate_message(value, levels=levels - 1)


@cache
def pattern_of(message: str) -> re.Pattern[str]:
    """Return the pattern of the texts made from a message; if it ends with a sentence, others may follow.

    A value ends where the text after it occurs first. Without atomic groups, other ends would be tried for any text
    that does not match: as many combinations as the text's length to the power of the number of values.
    """
    start, *parts = (re.escape(part.replace("%%", "%")) for part in PLACEHOLDER.split(message))
    values = [f"(?P<{name}>.+?){after}" for name, after in zip(parts[::2], parts[1::2], strict=True)]
    pattern = start + "".join([*(f"(?>{value})" for value in values[:-1]), *values[-1:]])
    return re.compile(f"{pattern}(?: (?P<rest>.+))?" if message.endswith(".") else pattern, re.DOTALL)
